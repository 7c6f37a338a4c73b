package limits

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// MostDestinations is how many destinations are remembered. Beyond it the oldest goes.
const MostDestinations = 100_000

const (
	// longestAsked bounds the wait that a relay asks for: an absurd number must not stop a scope permanently.
	longestAsked = 24 * time.Hour
	// firstPace, in recipients a second, and doubling are the pace after a pause. lua/prelude.lua has the same.
	firstPace = 0.1
	doubling  = 30 * time.Second
	// recovered is the time after a pause from which the pace is not shown any more, because it is high.
	recovered = 10 * doubling
)

// Throttled slows a scope down after its relay asked for it. Nothing starts before retryAfter has passed (a
// day at most). If that is zero or less, the pause is 1 min; each further pause before the scope has
// recovered doubles it, up to 30 min. Then the scope starts slowly and recovers automatically. A call during
// a pause is about a message that was under way before it, so only a later retryAfter extends the pause.
func (l *Limits) Throttled(ctx context.Context, scope string, retryAfter time.Duration) error {
	wait := min(max(retryAfter, 0), longestAsked)
	keys := []string{scopeKey(scope), throttledKey(), versionKey()}
	args := throttleArgs{TestNow: l.store.clock(), Scope: scope, Wait: wait.Microseconds()}
	if IsDestination(scope) {
		keys[1], args.Most = throttledDestinationsKey(), MostDestinations
	}
	got, err := throttleScript.Run(ctx, l.store.db.Client(), keys, args)
	if err != nil {
		return redisdb.Failed(err, "limits: slow down "+scope)
	}
	if got.Word == "BEGUN" {
		l.throttled.Clear()
		l.metrics.throttled(scope)
		l.log.Warn("a relay asked to slow down", "scope", scope, "until", time.UnixMicro(got.Pause).UTC(),
			"pauses_in_a_row", got.Strikes)
	}
	return nil
}

// mayBeThrottled reports, usually without Redis, whether the script must be asked about a scope without
// rates.
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
			at := now.Add(d)
			until[scope] = at
			if of, ok := strings.CutPrefix(scope, destinationKind); ok {
				gateway, _, _ := strings.Cut(of, ":")
				all := Destination(gateway, "")
				until[all] = later(until[all], at)
			}
		}
		return until, true, nil
	})
	if err != nil {
		return false, redisdb.Failed(err, "limits: look for throttled scopes")
	}
	return now.Before(until[scope]), nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// SlowsDestinations reports whether a destination of a gateway may be slowed down, as mayBeThrottled does.
func (l *Limits) SlowsDestinations(ctx context.Context, gateway string) (bool, error) {
	return l.mayBeThrottled(ctx, Destination(gateway, ""))
}

// State is the state of a scope, for display. The zero State is of a scope that is not slowed down.
type State struct {
	Until time.Time // end of the pause that the relay asked for; zero if there is none now
	// recipients a second that the scope may serve while it recovers; during a pause 0.1, with which it begins;
	// zero if it has recovered
	Pace        float64
	Pauses      int       // pauses in a row; zero if it has recovered
	Reserved    time.Time // time of the last reservation; zero if none is in the future
	Connections int       // counted now, of all processes
}

// State returns the state of a scope. It costs one round trip, and is for pages and the API.
func (l *Limits) State(ctx context.Context, scope string) (State, error) {
	s, err := l.store.look(ctx, scope)
	if err != nil {
		return State{}, redisdb.Failed(err, "limits: read the state of "+scope)
	}
	return s, nil
}

// stateOf returns the State of stored values.
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
