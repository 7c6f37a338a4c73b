package main

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// TestMain lets the test program be the Postroom of a row.
func TestMain(m *testing.M) {
	rig.Serve()
	os.Exit(m.Run())
}

// TestRowsMeasure measures each row once, with few messages: those that last a fixed time are left out.
func TestRowsMeasure(t *testing.T) {
	all := rows()
	for _, r := range all {
		if slices.Contains([]string{"rest", "steady100", "steady500", "list"}, r.name) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			got, err := once(ctx, r, "", options{messages: 20})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range got {
				if v.is <= 0 && v.name != "Postroom, µs" && v.name != "Redis, µs" { // ticks of 10 ms
					t.Errorf("%s is %v", v.name, v.is)
				}
			}
			if r.of != "" && !slices.ContainsFunc(all, func(o row) bool { return o.name == r.of && o.bare != nil }) {
				t.Errorf("it is compared with %q, which is no bare row", r.of)
			}
		})
	}
}

// TestTheTable compares medians and ratios with those made by hand.
func TestTheTable(t *testing.T) {
	for _, c := range []struct {
		all    []float64
		median float64
		text   string
	}{
		{[]float64{7}, 7, "7.00"},
		{[]float64{300, 100, 200}, 200, "200 (100 to 300)"},
		{[]float64{12, 0.5}, 0.5, "0.50 (0.50 to 12.0)"},
	} {
		if got := median(c.all); got != c.median {
			t.Errorf("the median of %v is %v", c.all, got)
		}
		if got := spread(c.all); len(got) < 28 || got[:len(c.text)] != c.text {
			t.Errorf("%v is written as %q", c.all, got)
		}
	}
}
