package routing

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/smtpsend"
)

// full is why a message does not go now: a candidate without room, the account's limit, or limits that can't be asked.
type full struct {
	candidate
	place  place  // to be shown when the message comes back
	booked bool   // this message has a place there, or nothing is to be had by asking again now
	slowed bool   // the relay asked for it. That is a failure, so fallbacks come into question
	kind   string // for metrics: limit, connections, unavailable
	until  time.Time
	reason string // for people
}

// failure is what recipients met who are left because of it.
func (f full) failure() *smtpsend.Error {
	return &smtpsend.Error{
		Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Throttle, Scope: smtpsend.ScopeConnection, Err: errors.New("no room at another relay: " + f.reason),
	}
}

// room takes the message's place in the limits and reports whether it may go now. Otherwise a.full or a.halt say why not. Insist asks even
// about a relay that is known to be full.
func (a *attempt) room(ctx context.Context, c candidate, insist bool) bool {
	mine := a.place.scope == c.scope
	if mine && a.place.paid == paidAll {
		a.charged = true
		return true
	}
	if len(a.candidates) == 1 {
		return a.onlyRoom(ctx, c)
	}
	if !a.charged && !a.charge(ctx) {
		return false
	}
	if !mine && !insist {
		if k, ok := a.rooms.look(c.scope, a.now()); ok {
			a.full = append(a.full, full{candidate: c, until: k.until, slowed: k.slowed, kind: "limit", reason: k.reason})
			return false
		}
	}
	slot := a.place.slot
	if !mine {
		slot = a.rooms.spare(c.scope, len(a.merge.left))
	}
	answer, ok := a.take(ctx, slot, limits.Scope{Name: c.scope, Rate: c.Rate})
	if !ok || answer.OK {
		return ok
	}
	f := full{candidate: c, booked: true, slowed: a.slowed(ctx, c), kind: "limit", until: answer.At, reason: answer.Reason}
	f.place = place{scope: c.scope, paid: paidAccount, slot: answer.Slot}
	a.rooms.note(c.scope, known{until: f.until, slowed: f.slowed, reason: f.reason})
	a.full = append(a.full, f)
	return false
}

// onlyRoom is room where there is no other candidate: one question for the account and the relay.
func (a *attempt) onlyRoom(ctx context.Context, c candidate) bool {
	scopes := []limits.Scope{{Name: c.scope, Rate: c.Rate}}
	if a.place.paid == "" {
		scopes = append([]limits.Scope{a.account()}, scopes...)
	}
	answer, ok := a.take(ctx, a.place.slot, scopes...)
	if ok && !answer.OK {
		p := place{scope: c.scope, paid: a.place.paid, slot: answer.Slot}
		a.halt = &full{candidate: c, place: p, booked: true, kind: "limit", until: answer.At, reason: answer.Reason}
	}
	return ok && answer.OK
}

// charge asks the account's limit, once for all relays that are tried.
func (a *attempt) charge(ctx context.Context) bool {
	if a.place.paid == "" {
		answer, ok := a.take(ctx, a.place.slot, a.account())
		if !ok {
			return false
		}
		if !answer.OK {
			a.halt = &full{place: place{slot: answer.Slot}, booked: true, kind: "limit", until: answer.At, reason: answer.Reason}
			return false
		}
	}
	a.charged = true
	return true
}

func (a *attempt) account() limits.Scope {
	return limits.Scope{Name: "account:" + a.d.Account.ID, Rate: a.d.Account.Rate}
}

// take asks limits. When they can't be asked nothing goes out: mail must not go over a limit because nobody counts.
func (a *attempt) take(ctx context.Context, slot limits.Slot, scopes ...limits.Scope) (limits.Answer, bool) {
	answer, err := a.Limits.Take(ctx, scopes, len(a.merge.left), slot)
	if err == nil {
		return answer, true
	}
	a.log.WarnContext(ctx, "limits not asked", "scope", scopes[0].Name, "error", err)
	p := a.place
	if a.charged && p.paid == "" {
		p.paid = paidAccount
	}
	a.halt = &full{place: p, booked: true, kind: "unavailable", until: a.now().Add(a.soon()), reason: "the limits can't be asked now"}
	return limits.Answer{}, false
}

// slowed reports whether a relay without room has asked us to slow down. It matters only where there is a fallback.
func (a *attempt) slowed(ctx context.Context, c candidate) bool {
	for _, other := range a.candidates {
		if other.tier > c.tier {
			s, err := a.Limits.State(ctx, c.scope)
			return err == nil && s.Pace > 0
		}
	}
	return false
}

// crowded reports whether a relay was not asked because all the connections it may have are taken, by all processes together.
func crowded(t Try) bool {
	for _, r := range t.Result.Recipients {
		if e := r.Err; e == nil || e.Verdict != smtpsend.Throttle || e.Phase != smtpsend.PhaseConnect || e.Code != 0 {
			return false
		}
	}
	return len(t.Result.Recipients) > 0
}

// crowd makes a relay without a free connection one without room. The message has paid its place there.
func (a *attempt) crowd(c candidate, t Try) {
	wait := max(t.Result.Recipients[0].Err.RetryAfter, time.Second)
	f := full{candidate: c, booked: true, kind: "connections", until: a.now().Add(wait), reason: c.String() + ": all connections are taken"}
	f.place = place{scope: c.scope, paid: paidAll}
	if len(a.candidates) > 1 {
		a.rooms.note(c.scope, known{until: f.until, reason: f.reason})
	}
	a.full = append(a.full, f)
}
