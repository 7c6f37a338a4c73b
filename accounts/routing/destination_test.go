package routing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/smtpsend"
)

// bounded is a gateway with limits for domains, as the settings have them.
func bounded(t *testing.T, kind api.GatewayType, name string, lines ...string) gateways.Relay {
	t.Helper()
	all, err := gateways.ParseDomainLimits(lines)
	if err != nil {
		t.Fatal(err)
	}
	r := gateway(name)
	r.Type, r.Destinations = kind, gateways.NewDestinations(kind, all)
	return r
}

// TestWhichDestinationsAreAsked: each group once, before account and gateway; without limits none.
func TestWhichDestinationsAreAsked(t *testing.T) {
	some := []string{"a@example.org", "b@EXAMPLE.org.", "c@gmail.com", "d@googlemail.com", "e@yahoo.de",
		"f@yahoo.example.com"}
	for name, row := range map[string]struct {
		relay gateways.Relay
		slows bool
		want  string
	}{
		"without limits": {gateway("g"), false, "account:shop+gateway:g 6"},
		"with limits": {bounded(t, "", "g", "perMinute=5"), false, "dest:g:example.org+dest:g:gmail.com+" +
			"dest:g:yahoo.com+dest:g:yahoo.example.com+account:shop+gateway:g 6"},
		"while one is slowed down": {gateway("g"), true, "dest:g:example.org+dest:g:gmail.com+dest:g:yahoo.com+" +
			"dest:g:yahoo.example.com+account:shop+gateway:g 6"},
		"of an account's own relay": {own(), true, "account:shop+relay:shop 6"},
	} {
		t.Run(name, func(t *testing.T) {
			w := setup(t)
			w.limits.slows = row.slows
			w.send([]gateways.Relay{row.relay}, some...)
			if diff := cmp.Diff([]string{row.want}, w.limits.takes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGroupsOfDirectDelivery: groups come from the domains' servers. A domain that the settings name is
// alone, and without an answer of the DNS the name decides.
func TestGroupsOfDirectDelivery(t *testing.T) {
	w := setup(t)
	w.Group = func(_ context.Context, domain string) (string, error) {
		if domain == "gmail.com" || domain == "lost.example" {
			return domain, errors.New("no answer")
		}
		return "mx.hoster.example", nil
	}
	a := w.newAttempt(dispatch(nil), nil)
	c := newCandidate("shop", bounded(t, api.GatewayMX, "g", "named.example perSecond=1", "outlook.com"), 0)
	for address, want := range map[string]string{
		"a@one.example": "mx.hoster.example", "a@two.example": "mx.hoster.example",
		"a@gmail.com": "google.com", "a@lost.example": "lost.example", "a@named.example": "named.example",
		"a@hotmail.com": "olc.protection.outlook.com",
	} {
		if got := a.group(t.Context(), c, address); got != want {
			t.Errorf("%s is of %s, want %s", address, got, want)
		}
	}
}

// TestAFullDestinationLeavesTheRelayToOthers: a message to another domain goes through the same gateway, one
// to the same domain through another of the group, and nobody asks again.
func TestAFullDestinationLeavesTheRelayToOthers(t *testing.T) {
	w := setup(t)
	routes := []gateways.Relay{bounded(t, "", "a:1", "perMinute=5"), gateway("b:1")}
	const slow = "dest:a:slow.example"
	w.limits.full[slow] = begin.Add(time.Minute)
	for range 2 {
		if diff := cmp.Diff("b:delivered", w.send(routes, "x@slow.example").summary()); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff("a:delivered", w.send(routes, "x@fast.example").summary()); diff != "" {
		t.Error(diff)
	}
	asked := 0
	for _, take := range w.limits.takes {
		if strings.HasPrefix(take, slow) {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times for a destination known to be full", asked)
	}
	w.advance(time.Minute)
	w.limits.takes = nil
	w.send(routes, "x@slow.example")
	if diff := cmp.Diff(slow+"+account:shop+gateway:a 1 b.1.0.s."+slow, w.limits.takes[0]); diff != "" {
		t.Errorf("the place that was left goes to the next to that domain: %s", diff)
	}
}

// TestWhoWaitsForADestinationHasNotPaid: the message waits with the destination's reservation, no attempt is
// spent, and it pays when it comes back.
func TestWhoWaitsForADestinationHasNotPaid(t *testing.T) {
	w := setup(t)
	const slow = "dest:g:slow.example"
	w.limits.full[slow] = begin.Add(time.Minute)
	d := dispatch([]gateways.Relay{bounded(t, "", "g", "perMinute=5")}, "x@slow.example")
	sent := w.Send(t.Context(), d)
	if sent.summary() != "wait 1m0s" || sent.Reason != slow+" is full" || sent.Destination != slow {
		t.Fatalf("%+v", sent)
	}
	w.at, w.limits.takes, d.Reservation = sent.Wait, nil, sent.Reservation
	if diff := cmp.Diff("g:delivered", w.Send(t.Context(), d).summary()); diff != "" {
		t.Error(diff)
	}
	want := []string{slow + "+account:shop+gateway:g 1 b.1.0.s." + slow}
	if diff := cmp.Diff(want, w.limits.takes); diff != "" {
		t.Error(diff)
	}
}

// TestADestinationSlowsDownAlone: a reply that a domain gets too much slows that domain. In direct delivery,
// so does a reply that it gets too much from us; otherwise that slows the gateway.
func TestADestinationSlowsDownAlone(t *testing.T) {
	busy := smtpsend.Error{Phase: smtpsend.PhaseRcpt, Code: 450, Line: "450 slowly", Verdict: smtpsend.Throttle,
		RetryAfter: time.Minute}
	for name, row := range map[string]struct {
		relay gateways.Relay
		scope smtpsend.Scope
		want  map[string]time.Duration
	}{
		"a relay, of the domain": {gateway("g"), smtpsend.ScopeDomain,
			map[string]time.Duration{"dest:g:gmail.com": time.Minute}},
		"a relay, of us": {gateway("g"), smtpsend.ScopeDestination,
			map[string]time.Duration{"gateway:g": time.Minute}},
		"an account's own relay": {own(), smtpsend.ScopeDomain,
			map[string]time.Duration{"relay:shop": time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			w := setup(t)
			e := busy
			e.Scope = row.scope
			w.relays.replies = map[string]smtpsend.Error{"slow": e}
			w.send([]gateways.Relay{row.relay}, "slow@googlemail.com", "fine@example.org")
			if diff := cmp.Diff(row.want, w.limits.slowed); diff != "" {
				t.Error(diff)
			}
		})
	}
	w := setup(t)
	e := busy
	e.Scope = smtpsend.ScopeDestination
	c := newCandidate("shop", bounded(t, api.GatewayMX, "g"), 0)
	to := []string{"a@gmail.com", "b@example.org"}
	a := w.newAttempt(dispatch(nil, to...), []candidate{c})
	r := sameForAll(to[:1], &e)
	r.Recipients = append(r.Recipients, smtpsend.RecipientResult{Address: to[1]})
	a.learn(t.Context(), c, pass{name: c.scope}, Try{Gateway: "g", Direct: true, Result: r})
	want := map[string]time.Duration{"dest:g:google.com": time.Minute}
	if diff := cmp.Diff(want, w.limits.slowed); diff != "" {
		t.Error(diff)
	}
}

// TestConnectionsOfADestination: messages beyond them wait, with their share of the limits paid, each a bit
// longer than the one before. Mail to other domains goes.
func TestConnectionsOfADestination(t *testing.T) {
	w := setup(t)
	routes := []gateways.Relay{bounded(t, "", "g", "busy.example connections=2")}
	w.limits.open["dest:g:busy.example"] = 2
	var waits []string
	var last Sent
	for range 3 {
		last = w.send(routes, "x@busy.example")
		waits = append(waits, last.summary())
	}
	if diff := cmp.Diff([]string{"wait 0s", "wait 500ms", "wait 1s"}, waits); diff != "" {
		t.Error(diff)
	}
	if last.Relay != "" || last.Reason != "gateway g: all connections to busy.example are taken" {
		t.Errorf("%+v", last)
	}
	if diff := cmp.Diff("g:delivered", w.send(routes, "x@other.example").summary()); diff != "" {
		t.Error(diff)
	}
	w.limits.open["dest:g:busy.example"], w.limits.takes = 1, nil
	d := dispatch(routes, "x@busy.example")
	d.Reservation = last.Reservation
	if diff := cmp.Diff("g:delivered", w.Send(t.Context(), d).summary()); diff != "" || w.limits.takes != nil {
		t.Errorf("%s, paid again: %v", diff, w.limits.takes)
	}
	if got := w.limits.open["dest:g:busy.example"]; got != 1 {
		t.Errorf("%d connections are open, want that of the other message", got)
	}
}

// TestTwoDomainsOnRealLimits: one domain is limited and the other goes at full speed, with a choice of
// gateways and without. A throttled one waits for its pause only.
func TestTwoDomainsOnRealLimits(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a:1", "b:1"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			w := setup(t)
			real, err := limits.New(testredis.New(t), limits.Options{Now: func() time.Time { return w.at }})
			if err != nil {
				t.Fatal(err)
			}
			w.Limits = real
			var routes []gateways.Relay
			for _, name := range names {
				routes = append(routes, bounded(t, "", name, "slow.example perMinute=3"))
			}
			send := func(to string) string {
				d := dispatch(routes, to)
				d.Account.Rate = limits.Rate{PerMinute: 100}
				return w.Send(t.Context(), d).summary()
			}
			went := 0
			for range 50 {
				if strings.HasSuffix(send("x@slow.example"), ":delivered") {
					went++
				}
			}
			if went != 3*len(names) {
				t.Errorf("%d went to the limited domain, want %d", went, 3*len(names))
			}
			for i := range 100 - went {
				if got := send("x@fast.example"); !strings.HasSuffix(got, ":delivered") {
					t.Fatalf("message %d to the other domain: %s", i, got)
				}
			}
			if got := send("x@fast.example"); !strings.HasPrefix(got, "wait ") {
				t.Errorf("beyond the account's limit: %s", got)
			}
		})
	}
}
