package webhooks

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

var (
	good = reply{status: 200, latency: 50 * time.Millisecond}
	bad  = reply{err: errors.New("connection refused"), latency: time.Millisecond}
)

func newTestBreaker(limit int) *breaker {
	g := newBreaker(limit)
	g.rnd = func() float64 { return 0.5 }
	return g
}

func TestBreakerCapsRequestsPerEndpoint(t *testing.T) {
	g, now := newTestBreaker(3), time.Unix(1_000_000, 0)
	for i := range 3 {
		if _, ok := g.enter("a", now); !ok {
			t.Fatalf("request %d of 3 is kept out", i+1)
		}
	}
	back, ok := g.enter("a", now)
	if ok || !back.After(now) || back.After(now.Add(time.Second)) {
		t.Errorf("the fourth: passed %v, back in %s", ok, back.Sub(now))
	}
	if _, ok := g.enter("b", now); !ok {
		t.Error("another endpoint is kept out")
	}
	g.exit("a", good, 0, now)
	if _, ok := g.enter("a", now); !ok {
		t.Error("a free place is not given")
	}
}

func TestBreakerGivesSlowEndpointsFewerWorkers(t *testing.T) {
	for _, row := range []struct {
		latency time.Duration
		want    int
	}{{10 * time.Millisecond, 10}, {5 * time.Second, 10}, {10 * time.Second, 5}, {30 * time.Second, 1}, {
		time.Hour, 1}} {
		if got := newTestBreaker(10).allowed(&circuit{latency: row.latency}); got != row.want {
			t.Errorf("answers in %s: %d workers, want %d", row.latency, got, row.want)
		}
	}
}

// Ten thousand tasks for one slow endpoint must not spin through the queue: each comes back when it may be
// possible.
func TestBreakerSpacesABacklog(t *testing.T) {
	g, now := newTestBreaker(2), time.Unix(1_000_000, 0)
	g.rnd = func() float64 { return 0.99 }
	g.enter("a", now)
	g.enter("a", now)
	soonest, perSecond := now.Add(time.Hour), map[int64]int{}
	for range 100 {
		back, ok := g.enter("a", now)
		if ok {
			t.Fatal("one too many passed")
		}
		if back.Before(soonest) {
			soonest = back
		}
		perSecond[back.Unix()]++
	}
	if soonest.After(now.Add(time.Second)) {
		t.Errorf("the first in line comes back only after %s", soonest.Sub(now))
	}
	for second, n := range perSecond {
		if n > 3 {
			t.Errorf("%d tasks come back %d s later, for an endpoint that takes 2 a second", n, second-now.Unix())
		}
	}
	for range 10_000 {
		if back, _ := g.enter("a", now); back.After(now.Add(longestAway)) || back.Before(now.Add(longestAway/2)) {
			t.Fatalf("a late comer is sent away for %s", back.Sub(now))
		}
	}
}

func TestBreakerOpensAfterFailuresAndProbes(t *testing.T) {
	g, now := newTestBreaker(10), time.Unix(1_000_000, 0)
	for i := range breakAfter {
		if _, ok := g.enter("a", now); !ok {
			t.Fatalf("failure %d already keeps tasks out", i)
		}
		g.exit("a", bad, 0, now)
	}
	back, ok := g.enter("a", now)
	if ok || back.Before(now.Add(firstHold)) {
		t.Fatalf("after %d failures: passed %v, back in %s", breakAfter, ok, back.Sub(now))
	}
	now = now.Add(firstHold)
	if _, ok := g.enter("a", now); !ok {
		t.Fatal("nobody may ask whether it is back")
	}
	if _, ok := g.enter("a", now); ok {
		t.Error("a second one asks at the same time")
	}
	g.exit("a", bad, 0, now)
	if _, ok := g.enter("a", now.Add(firstHold)); ok {
		t.Error("the second pause is no longer than the first")
	}
	now = now.Add(2 * firstHold)
	if _, ok := g.enter("a", now); !ok {
		t.Fatal("nobody may ask again")
	}
	g.exit("a", good, 0, now)
	for i := range 10 {
		if _, ok := g.enter("a", now); !ok {
			t.Fatalf("it is back, yet request %d is kept out", i+1)
		}
	}
}

func TestBreakerPausesAreBounded(t *testing.T) {
	g, now := newTestBreaker(10), time.Unix(1_000_000, 0)
	for range 100 {
		if back, ok := g.enter("a", now); !ok {
			if back.Sub(now) > longestHold+longestAway {
				t.Fatalf("sent away for %s", back.Sub(now))
			}
			now = now.Add(longestHold)
			continue
		}
		g.exit("a", bad, 0, now)
	}
}

// Failures of requests that were under way together open the circuit once.
func TestBreakerCountsAVolleyOnce(t *testing.T) {
	g, now := newTestBreaker(10), time.Unix(1_000_000, 0)
	for range 10 {
		g.enter("a", now)
	}
	for range 10 {
		g.exit("a", bad, 0, now)
	}
	if _, ok := g.enter("a", now.Add(firstHold)); !ok {
		t.Error("one volley made the pause longer than the first")
	}
}

func TestBreakerTakesA400ForASignOfLife(t *testing.T) {
	g, now := newTestBreaker(10), time.Unix(1_000_000, 0)
	for range 3 * breakAfter {
		if _, ok := g.enter("a", now); !ok {
			t.Fatal("kept out by answers about the message")
		}
		g.exit("a", reply{status: 400}, 0, now)
	}
}

func TestBreakerRemembersNoHealthyEndpoint(t *testing.T) {
	g, now := newTestBreaker(10), time.Unix(1_000_000, 0)
	for i := range 1000 {
		id := fmt.Sprint(i)
		g.enter(id, now)
		if i%2 == 0 {
			g.exit(id, good, 0, now)
		} else {
			g.abandon(id)
		}
	}
	if len(g.circuits) != 0 {
		t.Errorf("%d endpoints remembered", len(g.circuits))
	}
}

func TestBreakerForgetsFailedEndpointsThatAreGone(t *testing.T) {
	g, now := newTestBreaker(10), time.Unix(1_000_000, 0)
	g.enter("a", now)
	g.exit("a", bad, 0, now)
	if g.tidy(now.Add(time.Hour)); len(g.circuits) != 1 {
		t.Error("forgotten too soon")
	}
	if g.tidy(now.Add(3 * time.Hour)); len(g.circuits) != 0 {
		t.Error("remembered for ever")
	}
}
