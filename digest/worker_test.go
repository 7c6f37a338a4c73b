package digest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom/internal/lease"
)

// TestALeaseOfAStepThatHangsEnds: a step that does not even end when its context does is not renewed for
// ever.
func TestALeaseOfAStepThatHangsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{leases: lease.NewSet(time.Minute, slog.Default(),
			func(context.Context, []held) ([]held, error) { return nil, nil })}
		h := held{3, "run r1", "7"}
		w.hold(t.Context(), h) // while it waits for a worker
		step, cancel := context.WithTimeout(t.Context(), giveUp)
		defer cancel()
		w.hold(step, h)
		time.Sleep(giveUp / 2)
		if !w.leases.Holds(h) {
			t.Error("the lease of a step at work is not renewed")
		}
		time.Sleep(giveUp)
		if w.leases.Holds(h) {
			t.Errorf("the lease is renewed after %v", giveUp)
		}
	})
}
