package webhooks

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	slow          = 5 * time.Second // an endpoint that takes longer than this gets fewer workers
	breakAfter    = 5               // failures in a row that open the circuit
	firstHold     = 5 * time.Second // how long the circuit stays open at first; doubles
	longestHold   = time.Minute
	longestAway   = time.Minute // no task is sent away for longer, so that a recovered endpoint is noticed soon
	assumedSpeed  = time.Second // of an endpoint that has not answered yet
	patientlyWait = time.Second // before another look while a probe is under way
	forgetAfter   = 2 * time.Hour
)

// gate keeps one slow or dead endpoint from holding the workers that others need. It lives in one process and knows, for each endpoint
// with requests under way or failing: how many requests there are (a cap), how long they take (the cap shrinks for a slow one), and how
// many failed in a row (a circuit: past a few, one request at a time asks whether the endpoint is back).
//
// A task that may not pass is told when to come back. The times are spaced as the endpoint drains, so that a backlog of ten thousand
// does not spin through the queue every second.
type gate struct {
	limit int            // requests to one endpoint at once
	rnd   func() float64 // in [0,1)

	mu    sync.Mutex
	doors map[string]*door // by endpoint; only those with something to remember
}

// door is what the gate knows of one endpoint.
type door struct {
	inside   int
	latency  time.Duration // of the last request
	failures int           // in a row
	hold     time.Duration // of the circuit, the last time it opened
	shut     time.Time     // nobody passes before
	asked    time.Time     // when a task last came
	line     time.Time     // when the last task sent away comes back
}

func newGate(limit int) *gate {
	return &gate{limit: limit, rnd: rand.Float64, doors: make(map[string]*door)}
}

// enter lets a task pass, or says when to come back. Whoever passed must leave.
func (g *gate) enter(endpoint string, now time.Time) (back time.Time, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.doors[endpoint]
	if d == nil {
		d = &door{latency: assumedSpeed}
		g.doors[endpoint] = d
	}
	d.asked = now
	switch {
	case now.Before(d.shut):
		return g.away(d, d.shut, now), false
	case d.failures >= breakAfter && d.inside > 0: // one probe at a time
		return g.away(d, now.Add(patientlyWait), now), false
	case d.inside >= g.allowed(d):
		return g.away(d, now, now), false
	}
	d.inside++
	return time.Time{}, true
}

// allowed is the cap of an endpoint: the full limit for a prompt one, fewer in proportion for a slow one, never none.
func (g *gate) allowed(d *door) int {
	if d.latency <= slow {
		return g.limit
	}
	return max(1, int(int64(g.limit)*int64(slow)/int64(d.latency)))
}

// away puts a task in the line that forms from the given time on, one place each, as fast as the endpoint takes them.
func (g *gate) away(d *door, from, now time.Time) time.Time {
	if d.line.Before(from) {
		d.line = from
	}
	d.line = d.line.Add(max(d.latency, 10*time.Millisecond) / time.Duration(g.allowed(d)))
	latest := now.Add(longestAway)
	if from.After(latest) {
		latest = from.Add(longestAway) // the endpoint itself named a later time
	}
	if d.line.After(latest) {
		d.line = latest
		return latest.Add(-time.Duration(g.rnd() * float64(longestAway) / 2)) // the line is longer than that: spread the rest
	}
	return d.line
}

// leave tells the gate what became of a request that passed. A verdict on the message alone, such as 400, is a sign of life.
func (g *gate) leave(endpoint string, r reply, wait time.Duration, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.doors[endpoint]
	if d == nil {
		return
	}
	d.inside--
	d.latency = r.latency
	if alive(r) {
		d.failures, d.hold, d.shut, d.line = 0, 0, time.Time{}, time.Time{}
	} else {
		d.fail(wait, now)
	}
	if d.inside <= 0 && d.failures == 0 {
		delete(g.doors, endpoint)
	}
}

// abandon undoes an enter after which no request was made.
func (g *gate) abandon(endpoint string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.doors[endpoint]
	if d == nil {
		return
	}
	if d.inside--; d.inside <= 0 && d.failures == 0 {
		delete(g.doors, endpoint)
	}
}

// tidy forgets endpoints that failed and were not asked for since, because they moved or are gone.
func (g *gate) tidy(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, d := range g.doors {
		if d.inside <= 0 && now.Sub(d.asked) > forgetAfter && now.After(d.shut) {
			delete(g.doors, name)
		}
	}
}

// fail counts a failure, opens the circuit after a few, and keeps a wait that the endpoint asked for.
func (d *door) fail(wait time.Duration, now time.Time) {
	d.failures++
	if d.failures >= breakAfter && !now.Before(d.shut) { // requests that were under way together open it once, not each for longer
		d.hold = min(longestHold, max(firstHold, 2*d.hold))
		d.shut = now.Add(d.hold)
	}
	if asked := now.Add(wait); wait > 0 && asked.After(d.shut) {
		d.shut = asked
	}
}

// alive says whether an answer shows that the endpoint works, whatever it thinks of the message.
func alive(r reply) bool {
	return r.ok() || r.err == nil && !r.retryable()
}
