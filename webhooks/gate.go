package webhooks

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	slow         = 5 * time.Second // an endpoint that takes longer than this gets fewer workers
	breakAfter   = 5               // failures in a row that open the circuit
	firstHold    = 5 * time.Second // how long the circuit stays open at first; doubles
	longestHold  = time.Minute
	longestAway  = time.Minute // no task is sent away for longer, so that a recovered endpoint is noticed soon
	assumedSpeed = time.Second // of an endpoint that has not answered yet
	probeWait    = time.Second // before another look while a probe is under way
	forgetAfter  = 2 * time.Hour
)

// gate keeps one slow or dead endpoint from holding the workers that others need. It lives in one process and knows, for each endpoint
// with requests under way or failing: how many requests there are (a cap), how long they take (the cap shrinks for a slow one), and how
// many failed in a row (a circuit: past a few, one request at a time asks whether the endpoint is back).
//
// A task that may not pass gets a time to come back. The times are spaced as the endpoint drains, so that a backlog of ten thousand
// does not spin through the queue every second.
type gate struct {
	limit int            // requests to one endpoint at once
	rnd   func() float64 // in [0,1)

	mu       sync.Mutex
	circuits map[string]*circuit // by endpoint; only those with something to remember
}

// circuit is what the gate knows of one endpoint.
type circuit struct {
	inside   int
	latency  time.Duration // of the last request
	failures int           // in a row
	hold     time.Duration // of the circuit, the last time it opened
	shut     time.Time     // no task passes before
	asked    time.Time     // when a task last came
	line     time.Time     // when the last task sent away comes back
}

func newGate(limit int) *gate {
	return &gate{limit: limit, rnd: rand.Float64, circuits: make(map[string]*circuit)}
}

// enter lets a task pass, or returns when it may come back. Each enter that passed needs an exit or an abandon.
func (g *gate) enter(endpoint string, now time.Time) (back time.Time, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.circuits[endpoint]
	if c == nil {
		c = &circuit{latency: assumedSpeed}
		g.circuits[endpoint] = c
	}
	c.asked = now
	switch {
	case now.Before(c.shut):
		return g.away(c, c.shut, now), false
	case c.failures >= breakAfter && c.inside > 0: // one probe at a time
		return g.away(c, now.Add(probeWait), now), false
	case c.inside >= g.allowed(c):
		return g.away(c, now, now), false
	}
	c.inside++
	return time.Time{}, true
}

// allowed is the cap of an endpoint: the full limit for a prompt one, fewer in proportion for a slow one, never none.
func (g *gate) allowed(c *circuit) int {
	if c.latency <= slow {
		return g.limit
	}
	return max(1, int(int64(g.limit)*int64(slow)/int64(c.latency)))
}

// away returns when a task comes back: after those sent away before it, at the pace at which the endpoint takes them.
func (g *gate) away(c *circuit, from, now time.Time) time.Time {
	if c.line.Before(from) {
		c.line = from
	}
	c.line = c.line.Add(max(c.latency, 10*time.Millisecond) / time.Duration(g.allowed(c)))
	latest := now.Add(longestAway)
	if from.After(latest) {
		latest = from.Add(longestAway) // the endpoint itself named a later time
	}
	if c.line.After(latest) {
		c.line = latest
		return latest.Add(-time.Duration(g.rnd() * float64(longestAway) / 2)) // the line is longer than that: spread the rest
	}
	return c.line
}

// exit reports the result of a request that passed. A verdict on the message alone, such as 400, is a sign of life.
func (g *gate) exit(endpoint string, r reply, wait time.Duration, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.circuits[endpoint]
	if c == nil {
		return
	}
	c.inside--
	c.latency = r.latency
	if alive(r) {
		c.failures, c.hold, c.shut, c.line = 0, 0, time.Time{}, time.Time{}
	} else {
		c.fail(wait, now)
	}
	if c.inside <= 0 && c.failures == 0 {
		delete(g.circuits, endpoint)
	}
}

// abandon undoes an enter after which no request was made.
func (g *gate) abandon(endpoint string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.circuits[endpoint]
	if c == nil {
		return
	}
	if c.inside--; c.inside <= 0 && c.failures == 0 {
		delete(g.circuits, endpoint)
	}
}

// tidy forgets endpoints that failed and were not asked for since, because they moved or are gone.
func (g *gate) tidy(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, c := range g.circuits {
		if c.inside <= 0 && now.Sub(c.asked) > forgetAfter && now.After(c.shut) {
			delete(g.circuits, name)
		}
	}
}

// fail counts a failure, opens the circuit after a few, and keeps a wait that the endpoint asked for.
func (c *circuit) fail(wait time.Duration, now time.Time) {
	c.failures++
	if c.failures >= breakAfter && !now.Before(c.shut) { // requests that were under way together open it once, not each for longer
		c.hold = min(longestHold, max(firstHold, 2*c.hold))
		c.shut = now.Add(c.hold)
	}
	if asked := now.Add(wait); wait > 0 && asked.After(c.shut) {
		c.shut = asked
	}
}

// alive reports whether an answer shows that the endpoint works, whatever it thinks of the message.
func alive(r reply) bool {
	return r.ok() || r.err == nil && !r.retryable()
}
