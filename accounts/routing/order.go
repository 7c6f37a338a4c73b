package routing

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
)

// candidate is a relay that a message may be taken to.
type candidate struct {
	gateways.Relay
	scope string // for its limits and its breaker
	owner string // who owns its access tokens
	tier  int    // candidates of one tier stand in for each other; a higher one is a fallback for lower ones
}

const gatewayScope = "gateway:"

func isGateway(scope string) bool { return strings.HasPrefix(scope, gatewayScope) }

func newCandidate(account string, r gateways.Relay, tier int) candidate {
	c := candidate{Relay: r, scope: Scope(account, r.Gateway), owner: "account:" + account, tier: tier}
	if r.Gateway != "" {
		c.owner = c.scope
	}
	return c
}

// kind returns the label of metrics.
func (c candidate) kind() string {
	if c.Gateway != "" {
		return "gateway"
	}
	return "relay"
}

// order puts an account's relays into the order in which one message tries them. Those with a weight share
// the place of the first of them, in an order drawn by weight. Random gives numbers from 0 up to, not
// including, 1.
func order(account string, routes []gateways.Relay, random func() float64) []candidate {
	out := make([]candidate, 0, len(routes))
	var weighted []gateways.Relay
	at := -1
	for _, r := range routes {
		if r.Weight > 0 {
			if at < 0 {
				at = len(out)
			}
			weighted = append(weighted, r)
			continue
		}
		out = append(out, newCandidate(account, r, 0))
	}
	if at >= 0 {
		group := make([]candidate, len(weighted))
		for i, r := range draw(weighted, random) {
			group[i] = newCandidate(account, r, 0)
		}
		out = slices.Insert(out, at, group...)
	}
	for i := 1; i < len(out); i++ {
		out[i].tier = out[i-1].tier
		if out[i].Weight == 0 || out[i-1].Weight == 0 {
			out[i].tier++
		}
	}
	return out
}

// Serving returns the relays for mail of a lane: those for that lane alone, or, if there are none, those for
// both. So mail of a lane with relays of its own never uses another, whose reputation it would share.
func Serving(routes []gateways.Relay, lane api.Lane) []gateways.Relay {
	out := make([]gateways.Relay, 0, len(routes))
	for _, of := range []api.Lane{lane, ""} {
		for _, r := range routes {
			if r.Lane == of {
				out = append(out, r)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// draw puts relays into a random order. The first is drawn by weight, the second likewise among the others,
// and so on.
func draw(routes []gateways.Relay, random func() float64) []gateways.Relay {
	total := 0
	for _, r := range routes {
		total += r.Weight
	}
	for i := range routes {
		pick := random() * float64(total)
		n := i
		for n < len(routes)-1 && pick >= float64(routes[n].Weight) {
			pick -= float64(routes[n].Weight)
			n++
		}
		total -= routes[n].Weight
		routes[i], routes[n] = routes[n], routes[i]
	}
	return routes
}

// preferred puts the candidate first whose reservation the message has waited for.
func preferred(all []candidate, scope string) []candidate {
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(rank(a, scope), rank(b, scope)) })
	return all
}

func rank(c candidate, scope string) int {
	if c.scope == scope {
		return 0
	}
	return 1
}
