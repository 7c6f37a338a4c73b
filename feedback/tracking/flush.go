package tracking

import (
	"context"
	"time"
)

const (
	flushEvery = 50 * time.Millisecond
	// held is how long a hit waits for the hits after it: see Burst.
	held = burstWithin + flushEvery
	// batch bounds the hits passed on together. More would keep a core busy for so long that new hits wait.
	batch = 250
	// retryEvery is the pause after a failure of the inbox.
	retryEvery = time.Second
	// appendTimeout bounds one call of the inbox, so that a hanging Redis is noticed.
	appendTimeout = 10 * time.Second
	sweepEvery    = 5 * time.Second
)

// Run passes hits to the inbox until ctx ends. Then it passes on the rest within Options.Grace, and returns
// nil. It logs failures when they begin and when they are over.
func (t *Tracking) Run(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var failing bool
	var rest, swept time.Time // last failure of the inbox; last sweep of visits
	for {
		select {
		case <-ctx.Done():
			t.finish(ctx)
			return nil
		case <-tick.C:
		}
		now := t.Now()
		if now.Sub(swept) >= sweepEvery {
			t.hits.sweep(now)
			swept = now
		}
		if failing && now.Sub(rest) < retryEvery {
			continue
		}
		err := t.flush(ctx, now.Add(-held))
		switch {
		case ctx.Err() != nil:
		case err != nil && !failing:
			t.Logger.WarnContext(ctx, "storing opens and clicks failed; they wait in memory", "waiting",
				t.hits.len(), "error", err)
		case err == nil && failing:
			t.Logger.InfoContext(ctx, "storing opens and clicks works again")
		}
		if failing = err != nil; failing {
			rest = now
		}
	}
}

// flush passes on all hits up to the time until.
func (t *Tracking) flush(ctx context.Context, until time.Time) error {
	for {
		facts, next := t.hits.ripe(until, batch)
		if len(facts) == 0 {
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, appendTimeout)
		err := t.put(limited, facts)
		cancel()
		if err != nil {
			return err
		}
		t.hits.done(next)
		for _, f := range facts {
			t.metrics.handedOver(f)
		}
	}
}

// finish passes on the rest when Run ends.
func (t *Tracking) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Grace)
	defer cancel()
	if err := t.flush(ctx, t.Now()); err != nil {
		n := t.hits.len()
		t.metrics.dropped.Add(float64(n))
		t.Logger.ErrorContext(ctx, "opens and clicks lost, because storing them "+
			"failed", "lost", n, "error", err)
	}
}
