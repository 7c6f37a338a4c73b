package limits

import (
	"context"
	"math"
	"time"

	"github.com/postroom/postroom/redisdb"
)

const (
	// longestAsked bounds what a relay may ask for, so that a nonsense number can't stop a scope for good.
	longestAsked = 24 * time.Hour
	// firstPace, in recipients a second, and doubling are how a scope starts again after a pause;
	// lua/prelude.lua has the same.
	firstPace = 0.1
	doubling  = 30 * time.Second
	// recovered is how long after a pause the pace is so high that nobody needs to know of it.
	recovered = 10 * doubling
)

// Throttled slows a scope down after its relay said it gets too much. Nothing starts before retryAfter has
// passed (a day at most), or, when that is zero or less, before a pause of 1 min, which doubles up to 30 min
// with each further pause that comes before the scope has recovered. Then the scope starts slowly and
// recovers by itself. Calls during a pause don't prolong it, except to honour a later retryAfter: they tell
// of messages that were under way when it began.
func (l *Limits) Throttled(ctx context.Context, scope string, retryAfter time.Duration) error {
	wait := min(max(retryAfter, 0), longestAsked)
	until, strikes, begun, err := l.store.throttle(ctx, scope, wait)
	if err != nil {
		return redisdb.Failed(err, "limits: slow down "+scope)
	}
	l.throttled.Clear()
	if begun {
		l.metrics.throttled(scope)
		l.log.Warn("a relay asked to slow down", "scope", scope, "until", until, "pauses_in_a_row", strikes)
	}
	return nil
}

// mayBeThrottled says, mostly without asking Redis, whether a scope without rates has to be asked about all
// the same.
func (l *Limits) mayBeThrottled(ctx context.Context, scope string) (bool, error) {
	now := l.now()
	until, _, err := l.throttled.Get(ctx, "", now, func(ctx context.Context) (map[string]time.Time, bool,
		error) {
		left, err := l.store.slow(ctx)
		if err != nil {
			return nil, false, err
		}
		until := make(map[string]time.Time, len(left))
		for scope, d := range left {
			until[scope] = now.Add(d)
		}
		return until, true, nil
	})
	if err != nil {
		return false, redisdb.Failed(err, "limits: look for throttled scopes")
	}
	return now.Before(until[scope]), nil
}

// State is what people want to know of a scope. The zero State is one that nothing holds back.
type State struct {
	// Until is when the pause that the relay asked for ends. Zero: there is none now.
	Until time.Time
	// Pace is how many recipients a second the scope may serve while it recovers; 0.1 is what it will begin with
	// while it is paused. Zero: it has recovered.
	Pace float64
	// Pauses is how many pauses came in a row. Zero when the scope has recovered.
	Pauses int
	// Reserved is the last reservation that was given to a message. Zero: none lies in the future.
	Reserved time.Time
	// Connections is how many connections of the scope are counted now, of all processes.
	Connections int
}

// State looks at a scope. It costs one round trip, and is for pages and the API.
func (l *Limits) State(ctx context.Context, scope string) (State, error) {
	s, err := l.store.look(ctx, scope)
	if err != nil {
		return State{}, redisdb.Failed(err, "limits: look at "+scope)
	}
	return s, nil
}

// stateOf makes a State of what is stored.
func stateOf(now, pause time.Time, pauses int, last time.Time) State {
	s := State{}
	if last.After(now) {
		s.Reserved = last
	}
	since := now.Sub(pause)
	if since >= recovered {
		return s
	}
	s.Pauses, s.Pace = pauses, firstPace*math.Exp2(max(since.Seconds(), 0)/doubling.Seconds())
	if since < 0 {
		s.Until = pause
	}
	return s
}
