package routing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
)

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		routes []string
		draw   float64
		want   string
	}{
		{"own relay alone", []string{"own"}, 0, "own/0"},
		{"own relay, then gateways in order", []string{"own", "b", "c"}, 0, "own/0 b/1 c/2"},
		{"weights: the first may be drawn", []string{"a:1", "b:3"}, 0.2, "a/0 b/0"},
		{"weights: the second may be drawn", []string{"a:1", "b:3"}, 0.25, "b/0 a/0"},
		{"fallbacks follow the weighted", []string{"a:1", "c", "b:1", "d"}, 0.9, "b/0 a/0 c/1 d/2"},
		{"a relay before the weighted comes first", []string{"own", "a:1", "b:1", "c"}, 0.9, "own/0 b/1 a/1 c/2"},
		{"one weight is a group of one", []string{"a:5", "b"}, 0.5, "a/0 b/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, o := range order("shop", list(c.routes...), func() float64 { return c.draw }) {
				got = append(got, fmt.Sprintf("%s/%d", o.SMTP.Host, o.tier))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALaneWithAWayOfItsOwnTakesNoOther(t *testing.T) {
	names := func(routes []gateways.Relay) (out []string) {
		for _, r := range routes {
			out = append(out, r.SMTP.Host)
		}
		return out
	}
	both := list("own", "a", "b", "c")
	both[2].Lane, both[3].Lane = api.Bulk, api.Bulk
	onlyBulk := both[2:]
	for _, row := range []struct {
		name   string
		routes []gateways.Relay
		lane   api.Lane
		want   []string
	}{
		{"bulk has its own", both, api.Bulk, []string{"b", "c"}},
		{"transactional takes what is for both", both, api.Transactional, []string{"own", "a"}},
		{"nothing for transactional", onlyBulk, api.Transactional, nil},
		{"all for both", list("own", "a"), api.Bulk, []string{"own", "a"}},
	} {
		if diff := cmp.Diff(row.want, names(Serving(row.routes, row.lane))); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
	}
}

func TestWeightsAreShares(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)).Float64
	const rounds = 20_000
	first := map[string]int{}
	for range rounds {
		routes := list("a:1", "b:2", "c:7")
		all := order("shop", routes, random)
		first[all[0].Gateway]++
		if len(all) != 3 || all[0].Gateway == all[1].Gateway || all[1].Gateway == all[2].Gateway ||
			all[0].Gateway == all[2].Gateway {
			t.Fatalf("not an order of all: %v", all)
		}
	}
	for name, share := range map[string]float64{"a": .1, "b": .2, "c": .7} {
		if got := float64(first[name]) / rounds; got < share-.02 || got > share+.02 {
			t.Errorf("gateway %s comes first in %.3f of all cases, want %.1f", name, got, share)
		}
	}
}

func TestOrderLeavesTheAccountAsItIs(t *testing.T) {
	routes := list("a:1", "b:1", "c")
	order("shop", routes, func() float64 { return 0.9 })
	if diff := cmp.Diff("a b c", routes[0].Gateway+" "+routes[1].Gateway+" "+routes[2].Gateway); diff != "" {
		t.Error(diff)
	}
}
