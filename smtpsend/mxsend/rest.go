package mxsend

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/smtpsend"
)

// Servers that can't be reached rest, as relays do.
const (
	failuresToRest = 5
	firstRest      = 30 * time.Second
	longestRest    = 10 * time.Minute
	restKept       = time.Hour // without another failure
	mostRests      = 100_000
)

// rests remembers the servers of domains that couldn't be reached, all of one domain together.
type rests struct {
	mu  sync.Mutex
	all *memory[rest]
}

// rest is a set of servers that could not be reached since one last could.
type rest struct {
	failures int // in a row
	length   time.Duration
	since    time.Time // when the last rest began
	until    time.Time // zero if they don't rest
	why      *smtpsend.Error
}

// ask returns why the servers of a name must not be tried now, or nil if they may be. After a pause one
// caller gets nil, and the others wait for its result.
func (r *rests) ask(name string, now time.Time) *smtpsend.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.all.get(name, now)
	switch {
	case !ok || k.until.IsZero():
		return nil
	case !now.Before(k.until):
		k.until = now.Add(k.length)
		r.all.put(name, k, now.Add(restKept))
		return nil
	}
	e := silent(smtpsend.PhaseConnect, smtpsend.Soft, fmt.Errorf("the servers are not tried until %s: %w",
		k.until.UTC().Format(time.RFC3339), k.why))
	e.RetryAfter = k.until.Sub(now)
	return e
}

// learn notes whether servers could be reached; why is nil if they could. It reports whether a pause begins.
// A try that began before a pause is not another failure after it.
func (r *rests) learn(name string, why *smtpsend.Error, began, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why == nil {
		r.all.forget(name)
		return false
	}
	k, _ := r.all.get(name, now)
	if began.Before(k.since) {
		return false
	}
	k.failures++
	k.why = why
	rests := k.failures >= failuresToRest
	if rests {
		k.length = min(max(2*k.length, firstRest), longestRest)
		k.since, k.until = now, now.Add(k.length)
	}
	r.all.put(name, k, now.Add(restKept))
	return rests
}

// unreached returns a batch's failure if none of its servers could be reached. It returns nil if one could,
// or if the failure isn't about them.
func (d *delivery) unreached(all []int) *smtpsend.Error {
	var why *smtpsend.Error
	for _, i := range all {
		e := d.result.Recipients[i].Err
		if e == nil || e.Code != 0 || e.InDoubt || e.Verdict != smtpsend.Soft ||
			e.Scope != smtpsend.ScopeDestination || errors.Is(e, dialing.ErrRefused) ||
			e.Phase != smtpsend.PhaseConnect && e.Phase != smtpsend.PhaseGreeting {
			return nil
		}
		why = e
	}
	return why
}
