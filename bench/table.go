package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/postroom/postroom/bench/rig"
)

// value is something that a row measures, with its unit in its name.
type value struct {
	name string
	is   float64
}

// values are what a row measures, in the order of the table. The rate comes first, if there is one.
type values []value

// rate is the name of the value that ratios are made of.
const rate = "messages/s"

// table gathers the values of all rounds.
type table struct {
	rows   []row
	before bool                            // another build is measured, too
	got    map[string]map[string][]float64 // by row, "before " in front of its name, and by value
	names  map[string][]string             // the values of a row, in order
}

func newTable(rows []row, before bool) *table {
	return &table{rows: rows, before: before, got: map[string]map[string][]float64{},
		names: map[string][]string{}}
}

// add adds what a row measured in a round.
func (t *table) add(name string, before bool, got values) {
	key := key(name, before)
	if t.got[key] == nil {
		t.got[key] = map[string][]float64{}
	}
	for _, v := range got {
		t.got[key][v.name] = append(t.got[key][v.name], v.is)
		if !slices.Contains(t.names[name], v.name) {
			t.names[name] = append(t.names[name], v.name)
		}
	}
}

func key(name string, before bool) string {
	if before {
		return "before " + name
	}
	return name
}

// print prints the table: the median of each value, its range, and ratios.
func (t *table) print() {
	for _, r := range t.rows {
		rig.Title(r.name + ": " + r.what)
		for _, name := range t.names[r.name] {
			now := t.got[r.name][name]
			line := fmt.Sprintf("  %-34s %s", name, spread(now))
			if was := t.got[key(r.name, true)][name]; t.before && len(was) > 0 {
				line += fmt.Sprintf("   before %s   now ÷ before %.2f", spread(was), ratio(now, was))
			}
			fmt.Println(strings.TrimRight(line, " "))
			if bare := t.got[r.of][rate]; name == rate && len(bare) > 0 {
				fmt.Printf("  %-34s %.3f\n", "  ÷ "+r.of, ratio(now, bare))
			}
		}
	}
}

func ratio(a, b []float64) float64 { return median(a) / median(b) }

// median is the middle one, or the lower of the two in the middle.
func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)/2]
}

// spread is the median and, of several values, the range.
func spread(all []float64) string {
	text := number(median(all))
	if len(all) > 1 {
		text += " (" + number(slices.Min(all)) + " to " + number(slices.Max(all)) + ")"
	}
	return fmt.Sprintf("%-28s", text)
}

// number writes three digits or more.
func number(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}
