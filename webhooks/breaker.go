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
	longestAway  = time.Minute // the longest deferral, so that a recovered endpoint is noticed soon
	assumedSpeed = time.Second // for an endpoint that has not responded yet
	probeWait    = time.Second // how long a task waits while a probe is in flight
	forgetAfter  = 2 * time.Hour
)

// breaker prevents one slow or dead endpoint from using the workers that others need. It belongs to one
// process. For each endpoint with requests in flight or failures it knows:
//   - how many requests are in flight (a cap),
//   - how long they take (the cap shrinks for a slow one),
//   - how many failed in a row (a circuit: after a few, one request at a time probes the endpoint).
//
// A task that is not admitted gets a time to come back. The times are spaced at the endpoint's pace, so
// that a backlog of ten thousand does not go through the queue every second.
type breaker struct {
	limit int            // concurrent requests to one endpoint
	rnd   func() float64 // in [0,1)

	mu       sync.Mutex
	circuits map[string]*circuit // by endpoint; only those with requests in flight or failures
}

// circuit is the breaker's state of one endpoint.
type circuit struct {
	inside   int
	latency  time.Duration // the last request's
	failures int           // in a row
	hold     time.Duration // how long the circuit was open, the last time it opened
	shut     time.Time     // no task is admitted before
	woken    string        // the last request to end its pause that was obeyed
	asked    time.Time     // time of the last task
	line     time.Time     // when the last deferred task comes back
}

func newBreaker(limit int) *breaker {
	return &breaker{limit: limit, rnd: rand.Float64, circuits: make(map[string]*circuit)}
}

// enter admits a task, or returns when it may come back. Each admitted enter needs an exit or an abandon.
func (b *breaker) enter(endpoint string, now time.Time) (back time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[endpoint]
	if c == nil {
		c = &circuit{latency: assumedSpeed}
		b.circuits[endpoint] = c
	}
	c.asked = now
	switch {
	case now.Before(c.shut):
		return b.away(c, c.shut, now), false
	case c.failures >= breakAfter && c.inside > 0: // one probe at a time
		return b.away(c, now.Add(probeWait), now), false
	case c.inside >= b.allowed(c):
		return b.away(c, now, now), false
	}
	c.inside++
	return time.Time{}, true
}

// allowed returns the cap of an endpoint: the full limit for a fast one, proportionally fewer for a slow
// one, at least one.
func (b *breaker) allowed(c *circuit) int {
	if c.latency <= slow {
		return b.limit
	}
	return max(1, int(int64(b.limit)*int64(slow)/int64(c.latency)))
}

// away returns when a task comes back: after those deferred before it, at the pace of the endpoint.
func (b *breaker) away(c *circuit, from, now time.Time) time.Time {
	if c.line.Before(from) {
		c.line = from
	}
	c.line = c.line.Add(max(c.latency, 10*time.Millisecond) / time.Duration(b.allowed(c)))
	latest := now.Add(longestAway)
	if from.After(latest) {
		latest = from.Add(longestAway) // the endpoint itself named a later time
	}
	if c.line.After(latest) {
		c.line = latest
		// spread tasks beyond the longest deferral
		return latest.Add(-time.Duration(b.rnd() * float64(longestAway) / 2))
	}
	return c.line
}

// wake lets a task in before the end of a rest, once for each request. Should it fail, the rest begins again
// at its shortest.
func (b *breaker) wake(endpoint, request string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[endpoint]
	switch {
	case c == nil:
		b.circuits[endpoint] = &circuit{latency: assumedSpeed, woken: request}
	case c.woken != request:
		c.woken, c.hold, c.shut, c.line = request, 0, time.Time{}, time.Time{}
	}
}

// turn is a result's effect on an endpoint's circuit.
type turn struct {
	rests    time.Time // until when the endpoint is paused; zero if it is not paused for longer than before
	failures int       // in a row
	recovers bool      // it had rested, and works again
}

// exit records the result of an admitted request. A response about the message alone, such as 400, shows
// that the endpoint works.
func (b *breaker) exit(endpoint string, r reply, wait time.Duration, now time.Time) (next turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[endpoint]
	if c == nil {
		return turn{}
	}
	c.inside--
	c.latency = r.latency
	rested := c.shut
	if alive(r) {
		next.recovers = !rested.IsZero()
		c.failures, c.hold, c.shut, c.line = 0, 0, time.Time{}, time.Time{}
	} else {
		c.fail(wait, now)
		if next.failures = c.failures; !c.shut.Equal(rested) {
			next.rests = c.shut
		}
	}
	if c.inside <= 0 && c.failures == 0 {
		delete(b.circuits, endpoint)
	}
	return next
}

// abandon undoes an enter after which no request was made.
func (b *breaker) abandon(endpoint string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[endpoint]
	if c == nil {
		return
	}
	if c.inside--; c.inside <= 0 && c.failures == 0 {
		delete(b.circuits, endpoint)
	}
}

// tidy removes endpoints that failed and had no task since, because they moved or were deleted.
func (b *breaker) tidy(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, c := range b.circuits {
		if c.inside <= 0 && now.Sub(c.asked) > forgetAfter && now.After(c.shut) {
			delete(b.circuits, name)
		}
	}
}

// fail counts a failure, opens the circuit after a few, and keeps a wait that the endpoint requested.
func (c *circuit) fail(wait time.Duration, now time.Time) {
	c.failures++
	if c.failures >= breakAfter && !now.Before(c.shut) { // concurrent requests open it once, not each for longer
		c.hold = min(longestHold, max(firstHold, 2*c.hold))
		c.shut = now.Add(c.hold)
	}
	if asked := now.Add(wait); wait > 0 && asked.After(c.shut) {
		c.shut = asked
	}
}

// alive reports whether a response shows that the endpoint works, even if it refused the message.
func alive(r reply) bool {
	return r.ok() || r.err == nil && !r.retryable()
}
