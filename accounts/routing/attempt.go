package routing

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"

	"github.com/postroom/postroom/smtpsend"
)

// attempt is one Send under way.
type attempt struct {
	*Routes
	d          Dispatch
	candidates []candidate
	merge      merge
	place      place // that the message has waited for
	charged    bool  // the account's limit has let it pass
	tries      []Try
	full       []full   // candidates without room
	asleep     []asleep // candidates that rest
	halt       *full    // nothing can be tried any more, now
}

// asleep is a candidate that rests.
type asleep struct {
	candidate
	resting
}

func (r *Routes) newAttempt(d Dispatch, candidates []candidate) *attempt {
	p := placeOf(d.Slot)
	return &attempt{Routes: r, d: d, candidates: preferred(candidates, p.scope), merge: newMerge(d.Message), place: p}
}

// run takes the message from one candidate to the next until nobody is left who may fare better there.
func (a *attempt) run(ctx context.Context) Sent {
	for _, c := range a.candidates {
		if !a.comesIntoQuestion(ctx, c) {
			break
		}
		p, rests := a.breakers.ask(c.scope, settingsOf(c.Route), a.now())
		if rests != nil {
			a.asleep = append(a.asleep, asleep{c, *rests})
			continue
		}
		a.visit(ctx, c, p, false)
	}
	if len(a.tries) == 0 && a.halt == nil {
		a.lastResort(ctx)
	}
	return a.sent()
}

// comesIntoQuestion says whether the next candidate may be tried after those before it.
func (a *attempt) comesIntoQuestion(ctx context.Context, c candidate) bool {
	if a.merge.done() || a.halt != nil || len(a.tries) > 0 && ctx.Err() != nil {
		return false
	}
	for _, f := range a.full {
		if !f.slowed && c.tier > f.tier {
			return false // to have no room is no failure
		}
	}
	return true
}

// visit tries a candidate if there is room.
func (a *attempt) visit(ctx context.Context, c candidate, p pass, insist bool) {
	if !a.room(ctx, c, insist) {
		a.breakers.unused(p)
		return
	}
	relay, failure := a.login(ctx, c, "")
	t := a.once(ctx, c, relay, failure)
	if crowded(t) {
		a.breakers.unused(p)
		a.crowd(c, t)
		return
	}
	if len(a.tries) > 0 {
		a.metrics.failovers.Inc()
	}
	a.keep(t)
	if relay, failure, ok := a.secondChance(ctx, c, relay, t); ok {
		if again := a.once(ctx, c, relay, failure); !crowded(again) {
			a.keep(again)
			t = again
		}
	}
	a.learn(ctx, c, p, t)
}

func (a *attempt) keep(t Try) {
	a.tries = append(a.tries, t)
	a.merge.add(t.Result)
}

// lastResort is for a message for which nobody was tried: it goes to the one that is due first, even if that rests, or waits for the one
// that has room first.
func (a *attempt) lastResort(ctx context.Context) {
	switch {
	case len(a.full) > 0:
		sooner := func(x, y full) int { return x.until.Compare(y.until) }
		slices.SortStableFunc(a.full, sooner)
		if f := a.full[0]; !f.booked {
			a.full = a.full[1:]
			a.visit(ctx, f.candidate, a.breakers.force(f.scope, settingsOf(f.Route), a.now()), true)
			if len(a.tries) > 0 || a.halt != nil {
				return // it had room, or nobody can say
			}
		}
		booked := slices.DeleteFunc(slices.Clone(a.full), func(f full) bool { return !f.booked })
		first := slices.MinFunc(booked, sooner)
		a.halt = &first
	case len(a.asleep) > 0:
		slices.SortStableFunc(a.asleep, func(x, y asleep) int { return x.due.Compare(y.due) })
		first := a.asleep[0]
		a.asleep = a.asleep[1:]
		a.visit(ctx, first.candidate, a.breakers.force(first.scope, settingsOf(first.Route), a.now()), true)
		if len(a.full) > 0 {
			a.halt = &a.full[0]
		}
	}
}

// secondChance says whether the same relay is to be tried once more, at once: it refused an access token, and another can be had; or it only
// wants no further message on that connection.
func (a *attempt) secondChance(ctx context.Context, c candidate, relay smtpsend.Relay, t Try) (smtpsend.Relay, *smtpsend.Error, bool) {
	e, _ := errors.AsType[*smtpsend.Error](t.Err)
	switch {
	case e == nil || ctx.Err() != nil:
		return relay, nil, false
	case c.OAuth != nil && refusesToken(e):
		another, failure := a.login(ctx, c, relay.AccessToken)
		if failure == nil && another.AccessToken == relay.AccessToken || stubborn(failure) {
			return relay, nil, false // there is no other token; what the relay said stands
		}
		return another, failure, true
	}
	return relay, nil, e.Reconnect && elsewhere(e)
}

// once sends to a relay, unless the login has failed already.
func (a *attempt) once(ctx context.Context, c candidate, relay smtpsend.Relay, failure *smtpsend.Error) Try {
	t := Try{Gateway: c.Gateway, Host: host(c.Relay), Start: a.now()}
	m := a.merge.message()
	if failure != nil {
		t.Result, t.Err = everybody(m.To, failure), failure
	} else {
		t.Result, t.Err = a.Sender.Send(ctx, relay, attach(ctx, m, relay.Host, a.d.ID))
	}
	t.End = a.now()
	return t
}

// sent says how it went.
func (a *attempt) sent() Sent {
	a.leavePlaces()
	if len(a.tries) == 0 && a.halt != nil {
		a.metrics.waits[a.halt.kind].Inc()
		return Sent{Wait: a.halt.until, Slot: a.halt.place.text(), Reason: a.halt.reason}
	}
	for _, s := range a.asleep {
		a.merge.note(s.why)
	}
	for _, f := range a.full {
		a.merge.note(f.failure())
	}
	if a.halt != nil {
		a.merge.note(a.halt.failure())
	}
	return Sent{Tries: a.tries, Result: a.merge.result, Err: a.err()}
}

// err is the last try's word where that speaks for all, else what the tries come to together.
func (a *attempt) err() error {
	last := a.tries[len(a.tries)-1]
	alone := len(a.tries) == 1 && !a.merge.noted
	if alone || a.merge.done() && len(last.Result.Recipients) == len(a.d.Message.To) {
		return last.Err
	}
	return a.merge.err()
}

// leavePlaces gives away the places at relays for which the message does not wait.
func (a *attempt) leavePlaces() {
	for _, f := range a.full {
		if f.place.slot != "" && (a.halt == nil || a.halt.scope != f.scope) {
			a.rooms.leave(f.scope, f.place.slot, len(a.merge.original.To))
		}
	}
}

// host names a relay for people.
func host(r smtpsend.Relay) string {
	if r.Port == 0 {
		return r.Host
	}
	return net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
}
