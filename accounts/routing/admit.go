package routing

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// full is the reason for which a message is not sent now: a candidate or the account is at a limit, or limits
// can't be asked.
type full struct {
	candidate
	name       string      // the full scope's: the relay's, or a destination's
	kept       reservation // to be shown when the message comes back
	recipients int         // that the reservation is for
	reserved   bool        // the message has a reservation there, or asking again now is of no use
	slowed     bool        // the relay asked for it. That is a failure, so fallbacks may be used
	kind       string      // for metrics: limit, unavailable, or noConnection
	until      time.Time
	reason     string // for operators
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

// enter adds the message to the messages under way at a relay and at its destinations, if their limits admit
// it.
func (a *attempt) enter(ctx context.Context, c candidate, insist bool) (release func(), ok bool) {
	to, ok := a.destinations(ctx, c)
	if !ok || !a.admit(ctx, c, to, insist) {
		return nil, false
	}
	return a.occupy(ctx, c, to)
}

// admit takes the message's share of the limits and reports whether it may go now. If not, a.full or a.halt
// have the reason. With insist it asks even about a relay that is known to be full. All limits are asked
// together, so that a message that waits for one of them takes nothing from the limits after it.
func (a *attempt) admit(ctx context.Context, c candidate, to []destination, insist bool) bool {
	mine := a.waited.scope == c.scope
	if mine && a.waited.paid == paidAll {
		a.charged = true
		return true
	}
	scopes := make([]limits.Scope, 0, len(to)+2)
	for _, d := range to {
		scopes = append(scopes, d.Scope)
	}
	relay := append(slices.Clone(scopes), a.relay(c))
	had, choice := a.waited.inner, len(a.candidates) > 1
	if choice && !mine {
		if !insist && a.knownFull(c, relay) {
			return false
		}
		for _, s := range relay {
			had = had.Join(a.fullRelays.take(a.fullName(s.Name), cmp.Or(s.Recipients, len(a.results.left))))
		}
	}
	if !a.charged && a.waited.paid == "" {
		scopes = append(scopes, a.account())
	}
	scopes = append(scopes, a.relay(c))
	answer, ok := a.take(ctx, had, scopes...)
	if !ok || answer.OK {
		a.charged = a.charged || ok
		return ok
	}
	a.refused(ctx, c, scopes, answer)
	return false
}

// knownFull reports whether a relay, or a destination there, is known to be full, and notes that the message
// would wait for it.
func (a *attempt) knownFull(c candidate, scopes []limits.Scope) bool {
	for _, s := range scopes {
		if k, ok := a.fullRelays.find(a.fullName(s.Name), a.now()); ok {
			a.full = append(a.full, full{candidate: c, name: s.Name, until: k.until, slowed: k.slowed, kind: "limit",
				reason: k.reason})
			return true
		}
	}
	return false
}

// refused notes the reservation that a message got instead of a place.
func (a *attempt) refused(ctx context.Context, c candidate, asked []limits.Scope, answer limits.Answer) {
	f := full{candidate: c, name: answer.Scope, kept: reservation{scope: c.scope, paid: a.waited.paid,
		inner: answer.Reservation}, reserved: true, kind: "limit", until: answer.At, reason: answer.Reason}
	switch {
	case len(a.candidates) == 1:
		a.halt = &f
		return
	case answer.Scope == a.account().Name:
		f.candidate, f.kept.scope = candidate{}, ""
		a.halt = &f
		return
	case answer.Scope == c.scope:
		a.charged = true
	}
	if a.charged {
		f.kept.paid = paidAccount
	}
	f.slowed, f.recipients = a.slowed(ctx, c, answer.Scope), len(a.results.left)
	for _, s := range asked {
		if s.Name == answer.Scope && s.Recipients > 0 {
			f.recipients = s.Recipients
		}
	}
	a.wait(f)
}

// wait notes that a message waits for a relay or a destination, for others that have a choice, too.
func (a *attempt) wait(f full) {
	if len(a.candidates) > 1 {
		a.fullRelays.note(a.fullName(f.name), fullRelay{until: f.until, slowed: f.slowed, reason: f.reason})
	}
	a.full = append(a.full, f)
}

func (a *attempt) account() limits.Scope {
	return limits.Scope{Name: "account:" + a.d.Account.ID, Rate: a.d.Account.Rate, Bulk: a.d.Lane == api.Bulk}
}

func (a *attempt) relay(c candidate) limits.Scope {
	return limits.Scope{Name: c.scope, Rate: c.Rate, Bulk: a.d.Lane == api.Bulk}
}

// fullName names a scope among the full relays: one that is full for bulk mail may have room for other mail.
func (a *attempt) fullName(scope string) string { return scope + string(a.d.Lane) }

// take asks limits. If they can't be asked, nothing is sent: mail that is not counted could exceed a limit.
func (a *attempt) take(ctx context.Context, had limits.Reservation, scopes ...limits.Scope) (limits.Answer,
	bool) {
	answer, err := a.Limits.Reserve(ctx, scopes, len(a.results.left), had)
	if err == nil {
		return answer, true
	}
	return limits.Answer{}, a.unasked(ctx, scopes[0].Name, err)
}

// unasked notes that limits could not be asked. It returns false.
func (a *attempt) unasked(ctx context.Context, scope string, err error) bool {
	a.log.WarnContext(ctx, "limits not asked", "scope", scope, "error", err)
	kept := a.waited
	if a.charged && kept.paid == "" {
		kept.paid = paidAccount
	}
	a.halt = &full{
		kept: kept, reserved: true, kind: "unavailable", until: a.now().Add(a.soon()),
		reason: "the limits can't be asked now",
	}
	return false
}

// slowed reports whether the full scope at a relay has asked us to slow down. It matters only if there is a
// fallback.
func (a *attempt) slowed(ctx context.Context, c candidate, scope string) bool {
	for _, other := range a.candidates {
		if other.tier > c.tier {
			s, err := a.Limits.State(ctx, scope)
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
	a.wait(full{
		candidate: c, name: c.scope, kept: reservation{scope: c.scope, paid: paidAll}, reserved: true,
		kind: noConnection, until: a.now().Add(wait), reason: c.String() + ": all connections are taken",
	})
}

// noSlot notes that a relay has all the messages under way that it may have. The message has not paid its
// share of the limits, unless it waited for this relay before. It waits for one that stalls only if no other
// has room soon.
func (a *attempt) noSlot(c candidate, stalls bool) {
	f := full{candidate: c, name: c.scope, reserved: true, slowed: stalls, kind: noConnection,
		until:  a.now().Add(time.Second),
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
