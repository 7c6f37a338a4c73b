package tracking

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/postroom/postroom/internal/signedtoken"
)

// running is a world with Run, on the clock of synctest.
func running(t *testing.T, o Options) (w *world, stop func()) {
	t.Helper()
	w = setup(t, o)
	w.Now = time.Now
	w.clock = time.Now()
	w.id = w.message(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	return w, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// visitors opens an email by as many people.
func (w *world) visitors(n int) {
	for i := range n {
		v := by(agentOfAnn)
		v.Remote = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		w.Open(w.open(w.id), v)
	}
}

func TestHitsAreHeldForTwoSecondsAndHandedOverInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := running(t, Options{})
		w.visitors(2500)
		time.Sleep(1900 * time.Millisecond)
		if got := w.inbox.got(); len(got) != 0 {
			t.Errorf("%d after 1.9 s", len(got))
		}
		time.Sleep(850 * time.Millisecond)
		if got := w.inbox.got(); len(got) != 2500 || w.inbox.called() != 10 || w.hits.len() != 0 {
			t.Errorf("%d after 2.75 s, in %d batches, %d wait", len(got), w.inbox.called(), w.hits.len())
		}
		stop()
	})
}

func TestHitsWaitWhileTheInboxIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := running(t, Options{})
		w.inbox.fail(errors.New("away"))
		w.visitors(10)
		time.Sleep(10 * time.Second)
		if w.hits.len() != 10 || w.inbox.called() < 5 || w.inbox.called() > 9 {
			t.Errorf("%d wait after %d calls", w.hits.len(), w.inbox.called())
		}
		w.inbox.fail(nil)
		time.Sleep(1500 * time.Millisecond)
		if got := w.inbox.got(); len(got) != 10 || w.hits.len() != 0 {
			t.Errorf("%d told, %d wait", len(got), w.hits.len())
		}
		stop()
	})
}

func TestTheOldestGoWhereTooManyWait(t *testing.T) {
	for name, o := range map[string]Options{"by number": {MaxHits: 100},
		"by size": {MaxBytes: 100 * (400 + len("shop") + len(agentOfAnn))}} {
		t.Run(name, func(t *testing.T) {
			w := setup(t, o)
			for i := range 350 {
				w.clock = w.clock.Add(time.Second)
				w.Open(w.open(w.id), by(agentOfAnn))
				if i == 120 { // some are being passed on while others go
					facts, next := w.hits.ripe(w.clock, 50)
					defer func() { w.hits.done(next); _ = facts }()
				}
			}
			got := w.all()
			if len(got) != 100 || !got[99].At.Equal(w.clock) || !got[0].At.Equal(w.clock.Add(-99*time.Second)) {
				t.Errorf("%d left, from %v to %v", len(got), got[0].At, got[len(got)-1].At)
			}
			if n := testutil.ToFloat64(w.metrics.dropped); n != 250 {
				t.Errorf("%v counted as dropped", n)
			}
			if w.hits.bytes != 0 || len(w.hits.keys) != 0 || w.hits.length() != 0 {
				t.Errorf("left behind: %d bytes, %d keys, %d hits", w.hits.bytes, len(w.hits.keys), w.hits.length())
			}
		})
	}
}

// TestHitsDroppedWhileTheyAreHandedOver: these are dropped then, and no later hits.
func TestHitsDroppedWhileTheyAreHandedOver(t *testing.T) {
	w := setup(t, Options{MaxHits: 10})
	for i := range 10 {
		w.Click(w.click(w.id, fmt.Sprint("https://shop.test/", i)), by(agentOfAnn))
	}
	facts, next := w.hits.ripe(w.clock, 6)
	for i := range 4 {
		w.Click(w.click(w.id, fmt.Sprint("https://shop.test/later", i)), by(agentOfAnn))
	}
	w.hits.done(next)
	if len(facts) != 6 || w.hits.len() != 8 {
		t.Errorf("%d handed over, %d left, want 6 and 8", len(facts), w.hits.len())
	}
	if got := w.all(); len(got) != 8 || got[0].Details.URL != "https://shop.test/6" {
		t.Errorf("%d left, first %s", len(got), got[0].Details.URL)
	}
}

func TestWhatIsLeftIsHandedOverAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := running(t, Options{})
		w.visitors(1200)
		stop()
		if got := w.inbox.got(); len(got) != 1200 {
			t.Errorf("%d told", len(got))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, stop := running(t, Options{})
		w.inbox.fail(errors.New("away"))
		w.visitors(12)
		stop()
		if n := testutil.ToFloat64(w.metrics.dropped); n != 12 {
			t.Errorf("%v counted as dropped", n)
		}
	})
}

func TestReadersAreForgotten(t *testing.T) {
	w := setup(t, Options{})
	w.Click(w.click(w.id, "https://shop.test/"), by(agentOfAnn))
	w.clock = w.clock.Add(12 * time.Second)
	w.hits.sweep(w.clock)
	if len(w.hits.readers) != 1 {
		t.Error("forgotten too early")
	}
	w.hits.sweep(w.clock.Add(time.Millisecond))
	if len(w.hits.readers) != 0 {
		t.Error("not forgotten")
	}
}

func FuzzClick(f *testing.F) {
	ring := stamps(f)
	f.Add("", agentOfAnn)
	f.Add("EAGa", strings.Repeat("bot", 100))
	f.Fuzz(func(t *testing.T, token, agent string) {
		tr, err := New(ring, (&inbox{}).Append, Options{})
		if err != nil {
			t.Fatal(err)
		}
		tr.Open(token, by(agent))
		if target, err := tr.Click(token, by(agent)); err == nil {
			t.Errorf("%q leads to %q", token, target)
		}
		_ = botRule(opened, agent, time.Hour)
		if len(tr.newHit(opened, signedtoken.Token{}, by(agent), time.Now()).agent) > maxAgent {
			t.Error("too long")
		}
	})
}
