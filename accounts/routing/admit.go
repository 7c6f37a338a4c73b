package routing

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// full is the reason for which a message is not sent now: a candidate or the account is at a limit, or limits
// can't be asked.
type full struct {
	candidate
	kept     reservation // to be shown when the message comes back
	reserved bool        // the message has a reservation there, or asking again now is of no use
	slowed   bool        // the relay asked for it. That is a failure, so fallbacks may be used
	kind     string      // for metrics: limit, unavailable, or noConnection
	until    time.Time
	reason   string // for operators
}

// noConnection is the kind of waiting for a connection to a relay.
const noConnection = "connections"

// failure is the error of the recipients that are left because of it.
func (f full) failure() *smtpsend.Error {
	return &smtpsend.Error{
		Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Throttle, Scope: smtpsend.ScopeConnection,
		Err: errors.New("another relay is at its limit: " + f.reason),
	}
}

// admit takes the message's share of the limits and reports whether it may go now. If not, a.full or a.halt
// have the reason. With insist it asks even about a relay that is known to be full.
func (a *attempt) admit(ctx context.Context, c candidate, insist bool) bool {
	mine := a.waited.scope == c.scope
	if mine && a.waited.paid == paidAll {
		a.charged = true
		return true
	}
	if len(a.candidates) == 1 {
		return a.admitOnly(ctx, c)
	}
	if !a.charged && !a.charge(ctx) {
		return false
	}
	if !mine && !insist {
		if k, ok := a.fullRelays.find(a.fullName(c), a.now()); ok {
			a.full = append(a.full, full{candidate: c, until: k.until, slowed: k.slowed, kind: "limit",
				reason: k.reason})
			return false
		}
	}
	had := a.waited.inner
	if !mine {
		had = a.fullRelays.take(a.fullName(c), len(a.results.left))
	}
	answer, ok := a.take(ctx, had, a.relay(c))
	if !ok || answer.OK {
		return ok
	}
	f := limited(c, reservation{scope: c.scope, paid: paidAccount, inner: answer.Reservation}, answer)
	f.slowed = a.slowed(ctx, c)
	a.fullRelays.note(a.fullName(c), fullRelay{until: f.until, slowed: f.slowed, reason: f.reason})
	a.full = append(a.full, f)
	return false
}

// admitOnly is admit without other candidates: the account and the relay are asked together.
func (a *attempt) admitOnly(ctx context.Context, c candidate) bool {
	scopes := []limits.Scope{a.relay(c)}
	if a.waited.paid == "" {
		scopes = append([]limits.Scope{a.account()}, scopes...)
	}
	answer, ok := a.take(ctx, a.waited.inner, scopes...)
	if ok && !answer.OK {
		f := limited(c, reservation{scope: c.scope, paid: a.waited.paid, inner: answer.Reservation}, answer)
		a.halt = &f
	}
	return ok && answer.OK
}

// charge asks the account's limit, once for all relays that are tried.
func (a *attempt) charge(ctx context.Context) bool {
	if a.waited.paid == "" {
		answer, ok := a.take(ctx, a.waited.inner, a.account())
		if !ok {
			return false
		}
		if !answer.OK {
			f := limited(candidate{}, reservation{inner: answer.Reservation}, answer)
			a.halt = &f
			return false
		}
	}
	a.charged = true
	return true
}

// limited is a message that got a reservation instead of a slot.
func limited(c candidate, kept reservation, answer limits.Answer) full {
	return full{candidate: c, kept: kept, reserved: true, kind: "limit", until: answer.At, reason: answer.Reason}
}

func (a *attempt) account() limits.Scope {
	return limits.Scope{Name: "account:" + a.d.Account.ID, Rate: a.d.Account.Rate, Bulk: a.d.Lane == api.Bulk}
}

func (a *attempt) relay(c candidate) limits.Scope {
	return limits.Scope{Name: c.scope, Rate: c.Rate, Bulk: a.d.Lane == api.Bulk}
}

// fullName names a candidate among the full relays: one that is full for bulk mail may have room for other
// mail.
func (a *attempt) fullName(c candidate) string { return c.scope + string(a.d.Lane) }

// take asks limits. If they can't be asked, nothing is sent: mail that is not counted could exceed a limit.
func (a *attempt) take(ctx context.Context, had limits.Reservation, scopes ...limits.Scope) (limits.Answer,
	bool) {
	answer, err := a.Limits.Reserve(ctx, scopes, len(a.results.left), had)
	if err == nil {
		return answer, true
	}
	a.log.WarnContext(ctx, "limits not asked", "scope", scopes[0].Name, "error", err)
	kept := a.waited
	if a.charged && kept.paid == "" {
		kept.paid = paidAccount
	}
	a.halt = &full{
		kept: kept, reserved: true, kind: "unavailable", until: a.now().Add(a.soon()),
		reason: "the limits can't be asked now",
	}
	return limits.Answer{}, false
}

// slowed reports whether a full relay has asked us to slow down. It matters only if there is a fallback.
func (a *attempt) slowed(ctx context.Context, c candidate) bool {
	for _, other := range a.candidates {
		if other.tier > c.tier {
			s, err := a.Limits.State(ctx, c.scope)
			return err == nil && s.Pace > 0
		}
	}
	return false
}

// crowded reports whether a relay was not asked because all of its connections, of all processes, are taken.
func crowded(t Try) bool {
	for _, r := range t.Result.Recipients {
		if e := r.Err; e == nil || e.Verdict != smtpsend.Throttle || e.Phase != smtpsend.PhaseConnect ||
			e.Code != 0 {
			return false
		}
	}
	return len(t.Result.Recipients) > 0
}

// crowd notes that a relay has no free connection. The message has paid its share of the limits.
func (a *attempt) crowd(c candidate, t Try) {
	wait := max(t.Result.Recipients[0].Err.RetryAfter, time.Second)
	f := full{
		candidate: c, kept: reservation{scope: c.scope, paid: paidAll}, reserved: true, kind: noConnection,
		until: a.now().Add(wait), reason: c.String() + ": all connections are taken",
	}
	if len(a.candidates) > 1 {
		a.fullRelays.note(a.fullName(c), fullRelay{until: f.until, reason: f.reason})
	}
	a.full = append(a.full, f)
}

// noSlot notes that a relay has all the messages under way that it may have. The message has not paid its
// share of the limits, unless it waited for this relay before. It waits for one that stalls only if no other
// has room soon.
func (a *attempt) noSlot(c candidate, stalls bool) {
	f := full{candidate: c, reserved: true, slowed: stalls, kind: noConnection, until: a.now().Add(time.Second),
		reason: c.String() + ": all connections are taken"}
	if stalls {
		f.until = a.now().Add(firstRest)
		f.reason = c.String() + " does not answer; another message is trying it"
	}
	switch {
	case a.waited.scope == c.scope:
		f.kept = a.waited
	case a.charged || a.waited.paid != "":
		f.kept = reservation{scope: c.scope, paid: paidAccount}
	}
	a.full = append(a.full, f)
}
