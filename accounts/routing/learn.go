package routing

import (
	"context"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/smtpsend"
)

// learn updates the breaker, the limits and the gateway after a try.
func (a *attempt) learn(ctx context.Context, c candidate, p pass, t Try) {
	what, why := judge(t, ctx.Err() != nil)
	a.metrics.tries[c.kind()][what].Inc()
	// the relay's reply counts even if the lease on the message has been lost
	ctx = context.WithoutCancel(ctx)
	switch what {
	case delivered, refused:
		if a.breakers.worked(p) {
			a.log.InfoContext(ctx, "relay works again", "relay", c.scope)
		}
	case unreachable, stalled:
		a.rest(ctx, c, p, why)
	default:
		a.breakers.unused(p)
	}
	if wait, ok := asksToSlowDown(t); ok {
		a.slowDown(ctx, c.scope, wait)
	}
	for scope, wait := range a.slowDestinations(ctx, c, t) {
		a.slowDown(ctx, scope, wait)
	}
	if c.Gateway == "" || what == broken && why == nil {
		return
	}
	took := 0
	if what == delivered {
		took = 1
	}
	var err error
	if why != nil {
		err = why
	}
	a.Gateways.Outcome(ctx, c.Gateway, took, err)
}

// slowDown makes what asked for it get less mail, from all processes.
func (a *attempt) slowDown(ctx context.Context, scope string, wait time.Duration) {
	if err := a.Limits.Throttled(ctx, scope, wait); err != nil {
		a.log.WarnContext(ctx, "not slowed down", "scope", scope, "error", err)
	}
}

// slowDestinations returns the destinations that get too much mail, and the longest wait each asked for.
func (a *attempt) slowDestinations(ctx context.Context, c candidate, t Try) map[string]time.Duration {
	var waits map[string]time.Duration
	for _, got := range t.Result.Recipients {
		e := got.Err
		if e == nil || e.Verdict != smtpsend.Throttle || e.Code == 0 || !t.OfDestination(e) {
			continue
		}
		if waits == nil {
			waits = map[string]time.Duration{}
		}
		scope := limits.Destination(c.Gateway, a.group(ctx, c, got.Address))
		waits[scope] = max(waits[scope], e.RetryAfter)
	}
	return waits
}

// rest counts a failure, after which the relay may rest.
func (a *attempt) rest(ctx context.Context, c candidate, p pass, why *smtpsend.Error) {
	until := a.breakers.failed(p, why, a.now())
	if until.IsZero() {
		return
	}
	a.metrics.rests[c.kind()].Inc()
	a.log.WarnContext(ctx, "relay rests", "relay", c.scope, "until", until, "error", why)
	if c.Gateway != "" {
		a.Gateways.Opened(ctx, c.Gateway, until)
	}
}

// outcome is the result of a try for the relay.
type outcome string

const (
	delivered   outcome = "delivered"   // it took the message for at least one recipient
	refused     outcome = "refused"     // it judged the message or its recipients, and took it for none
	unreachable outcome = "unreachable" // it could not be reached or used, and judged nothing
	slowed      outcome = "slowed"      // it asked us to slow down
	stalled     outcome = "stalled"     // it did not answer in time, after it had accepted the connection
	broken      outcome = "broken"      // the conversation ended without an answer, or we ended it
)

var outcomes = []outcome{delivered, refused, unreachable, slowed, stalled, broken}

// judge returns the outcome of a try, and the failure for which the relay itself is to blame; nil if none.
func judge(t Try, stopped bool) (outcome, *smtpsend.Error) {
	what := broken
	var why *smtpsend.Error
	for _, r := range t.Result.Recipients {
		switch e := r.Err; {
		case e == nil:
			return delivered, nil
		case stopped && e.Code == 0: // our doing
		case e.Uncarried(): // it says nothing about the relay
		case t.OfDestination(e): // nor does this: other destinations may be well
			if what == broken {
				what = refused
			}
		case e.Verdict == smtpsend.Throttle && e.Scope != smtpsend.ScopeRecipient &&
			e.Scope != smtpsend.ScopeMessage:
			what, why = slowed, e
		case elsewhere(e) && !e.Reconnect:
			if what == broken {
				what, why = unreachable, e
			}
		case e.Timeout() && what == broken:
			what, why = stalled, e
		case e.Code != 0:
			if what != slowed {
				what, why = refused, nil
			}
		}
	}
	return what, why
}

// OfDestination reports whether a failure is about one recipient's domain or servers only.
func (t Try) OfDestination(e *smtpsend.Error) bool {
	return t.Direct && e.Scope == smtpsend.ScopeDestination || t.Gateway != "" && e.Scope == smtpsend.ScopeDomain
}

// endingOf returns how a try ended for its turn.
func endingOf(t Try, stopped bool) ending {
	how := unasked
	for _, r := range t.Result.Recipients {
		switch e := r.Err; {
		case e == nil || e.Code != 0 || t.OfDestination(e):
			return replied
		case stopped || e.Phase == smtpsend.PhaseCheck: // our doing
		case e.Timeout():
			how = silent
		case e.Phase != smtpsend.PhaseAuth: // there, no access token was available
			how = max(how, unreached)
		}
	}
	return how
}

// asksToSlowDown reports whether a relay said that it gets too much mail, and the longest wait it asked for.
func asksToSlowDown(t Try) (time.Duration, bool) {
	var wait time.Duration
	asks := false
	for _, got := range t.Result.Recipients {
		e := got.Err
		if e == nil || e.Verdict != smtpsend.Throttle || e.Code == 0 || e.Scope == smtpsend.ScopeRecipient ||
			e.Scope == smtpsend.ScopeMessage || t.OfDestination(e) {
			continue
		}
		asks, wait = true, max(wait, e.RetryAfter)
	}
	return wait, asks
}
