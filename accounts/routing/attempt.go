package routing

import (
	"context"
	"errors"
	"slices"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// attempt is one Send under way.
type attempt struct {
	*Router
	d          Dispatch
	candidates []candidate
	results    results
	waited     reservation // that the message comes back with
	charged    bool        // the account's limit was paid
	full       []full      // candidates at a limit
	asleep     []asleep    // candidates that are paused
	halt       *full       // why nothing more can be tried now
}

// asleep is a candidate that is paused.
type asleep struct {
	candidate
	resting
}

func (r *Router) newAttempt(d Dispatch, candidates []candidate) *attempt {
	waited := readReservation(d.Reservation)
	return &attempt{
		Router: r, d: d, candidates: preferred(candidates, waited.scope), results: newResults(d.Message),
		waited: waited,
	}
}

// run takes the message from one candidate to the next, as long as recipients are left that another may
// serve.
func (a *attempt) run(ctx context.Context) Sent {
	for _, c := range a.candidates {
		if !a.eligible(ctx, c) {
			break
		}
		p, rests := a.breakers.ask(a.breaker(c), settingsOf(c.Relay), a.now())
		if rests != nil {
			a.asleep = append(a.asleep, asleep{c, *rests})
			continue
		}
		a.visit(ctx, c, p, false)
	}
	if len(a.results.tries) == 0 && a.halt == nil {
		a.lastResort(ctx)
	}
	return a.sent()
}

// breaker is the name of the breaker of a candidate: a relay reached by a path of the message has its own.
func (a *attempt) breaker(c candidate) string { return c.scope + a.d.Proxy + a.d.LocalAddress }

// eligible reports whether a candidate may be tried after those before it.
func (a *attempt) eligible(ctx context.Context, c candidate) bool {
	if a.results.done() || a.halt != nil || len(a.results.tries) > 0 && ctx.Err() != nil {
		return false
	}
	for _, f := range a.full {
		if !f.slowed && c.tier > f.tier {
			return false // a reached limit isn't a failure, and fallbacks are for failures
		}
	}
	return true
}

// visit tries a candidate, if the limits admit that.
func (a *attempt) visit(ctx context.Context, c candidate, p pass, insist bool) {
	slot, stalls := a.slots.enter(c, a.d.Lane, a.d.Behind != nil && a.d.Behind(c.scope))
	if slot == nil {
		a.breakers.unused(p)
		a.noSlot(c, stalls)
		return
	}
	var last Try
	defer func() { a.slots.leave(slot, endingOf(last, ctx.Err() != nil)) }()
	release, ok := a.enter(ctx, c, insist)
	if !ok {
		a.breakers.unused(p)
		return
	}
	defer release()
	relay, failure := a.login(ctx, c, "")
	t := a.once(ctx, c, relay, failure)
	if crowded(t) {
		a.breakers.unused(p)
		a.crowd(c, t)
		return
	}
	last = t
	if len(a.results.tries) > 0 {
		a.metrics.failovers.Inc()
	}
	a.results.add(t)
	if relay, failure, ok := a.secondChance(ctx, c, relay, t); ok {
		if again := a.once(ctx, c, relay, failure); !crowded(again) {
			a.results.add(again)
			t, last = again, again
		}
	}
	a.learn(ctx, c, p, t)
}

// lastResort is for a message that no candidate was tried for. It takes the full one that is free first, and
// waits there if that is still full. Without a full one it takes the paused one that is due first.
func (a *attempt) lastResort(ctx context.Context) {
	switch {
	case len(a.full) > 0:
		sooner := func(x, y full) int { return x.until.Compare(y.until) }
		slices.SortStableFunc(a.full, sooner)
		if f := a.full[0]; !f.reserved {
			a.full = a.full[1:]
			a.visit(ctx, f.candidate, a.breakers.force(a.breaker(f.candidate), settingsOf(f.Relay), a.now()), true)
			if len(a.results.tries) > 0 || a.halt != nil {
				return // it was admitted, or the limits can't be asked
			}
		}
		reserved := slices.DeleteFunc(slices.Clone(a.full), func(f full) bool { return !f.reserved })
		first := slices.MinFunc(reserved, sooner)
		a.halt = &first
	case len(a.asleep) > 0:
		slices.SortStableFunc(a.asleep, func(x, y asleep) int { return x.due.Compare(y.due) })
		first := a.asleep[0]
		a.asleep = a.asleep[1:]
		p := a.breakers.force(a.breaker(first.candidate), settingsOf(first.Relay), a.now())
		a.visit(ctx, first.candidate, p, true)
		if len(a.full) > 0 {
			a.halt = &a.full[0]
		}
	}
}

// secondChance reports whether the same relay is tried once more, immediately. That is so if it refused an
// access token and there is another one, or if it wants no further message on that connection.
func (a *attempt) secondChance(ctx context.Context, c candidate, relay gateways.Relay, t Try) (gateways.Relay,
	*smtpsend.Error, bool) {
	e, _ := errors.AsType[*smtpsend.Error](t.Err)
	switch {
	case e == nil || ctx.Err() != nil:
		return relay, nil, false
	case c.OAuth != nil && refusesToken(e):
		another, failure := a.login(ctx, c, relay.SMTP.AccessToken)
		if failure == nil && another.SMTP.AccessToken == relay.SMTP.AccessToken || stubborn(failure) {
			return relay, nil, false // there is no other token; the relay's answer stands
		}
		return another, failure, true
	}
	return relay, nil, e.Reconnect && elsewhere(e)
}

// once sends to a relay, unless the login has failed already.
func (a *attempt) once(ctx context.Context, c candidate, relay gateways.Relay, failure *smtpsend.Error) Try {
	t := Try{Gateway: c.Gateway, Direct: c.Type == api.GatewayMX, Host: c.Host(),
		Address: relay.SMTP.LocalAddress, Start: a.now()}
	m := a.results.message()
	m.Bulk, m.Patience = a.d.Lane == api.Bulk, linePatience
	if failure != nil {
		t.Result, t.Err = sameForAll(m.To, failure), failure
	} else {
		t.Result, t.Err = a.Transports.of(relay).Send(ctx, relay, m)
	}
	t.End = a.now()
	return t
}

// sent is the result of the attempt.
func (a *attempt) sent() Sent {
	a.returnReservations()
	if len(a.results.tries) == 0 && a.halt != nil {
		a.metrics.waits[a.halt.kind].Inc()
		if a.charged && a.halt.kept.paid == "" {
			a.halt.kept.paid = paidAccount
		}
		wait := Sent{Wait: a.halt.until, Reservation: a.halt.kept.text(), Reason: a.halt.reason}
		if a.halt.kind == noConnection {
			wait.Relay = a.halt.scope
		} else if limits.IsDestination(a.halt.name) {
			wait.Destination = a.halt.name
		}
		return wait
	}
	for _, s := range a.asleep {
		a.results.note(s.why)
	}
	for _, f := range a.full {
		a.results.note(f.failure())
	}
	if a.halt != nil {
		a.results.note(a.halt.failure())
	}
	return Sent{Tries: a.results.tries, Result: a.results.result, Err: a.err()}
}

// err returns the last try's error if that speaks for all recipients, else the error of all tries together.
func (a *attempt) err() error {
	last := a.results.tries[len(a.results.tries)-1]
	alone := len(a.results.tries) == 1 && !a.results.noted
	if alone || a.results.done() && len(last.Result.Recipients) == len(a.d.Message.To) {
		return last.Err
	}
	return a.results.result.Err()
}

// returnReservations keeps the reservations that the message does not wait for, for other messages.
func (a *attempt) returnReservations() {
	for _, f := range a.full {
		if f.kept.inner != "" && (a.halt == nil || a.halt.scope != f.scope) {
			a.fullRelays.give(a.fullName(f.name), f.kept.inner.Of(f.name), f.recipients)
		}
	}
}
