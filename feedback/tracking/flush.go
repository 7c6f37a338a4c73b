package tracking

import (
	"context"
	"time"
)

const (
	flushEvery = 50 * time.Millisecond
	// held is how long a hit waits for what follows it: see Burst.
	held = burstWithin + flushEvery
	// batch is how many hits are handed over at once. More of them at a time would keep a core busy for so long that hits wait for it.
	batch = 250
	// retryEvery is how long a failing inbox is left alone.
	retryEvery = time.Second
	// appendTimeout ends one handing over, so that a hanging Redis is noticed.
	appendTimeout = 10 * time.Second
	sweepEvery    = 5 * time.Second
)

// Run hands hits to the inbox until ctx ends, then hands over what is left, within Options.Grace, and returns nil. Trouble is logged when it
// begins and when it is over.
func (t *Tracking) Run(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var failing bool
	var rest, swept time.Time // when the inbox failed; when visits were looked through
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
			t.Logger.WarnContext(ctx, "opens and clicks can't be handed over; they wait in memory", "waiting", t.hits.len(), "error", err)
		case err == nil && failing:
			t.Logger.InfoContext(ctx, "opens and clicks can be handed over again")
		}
		if failing = err != nil; failing {
			rest = now
		}
	}
}

// flush hands over all hits that came at until or before.
func (t *Tracking) flush(ctx context.Context, until time.Time) error {
	for {
		facts, next := t.hits.ripe(until, batch)
		if len(facts) == 0 {
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, appendTimeout)
		err := t.inbox.Append(limited, facts)
		cancel()
		if err != nil {
			return err
		}
		t.hits.done(next)
		for _, f := range facts {
			t.metrics.told(f)
		}
	}
}

// finish hands over what is left when Run is told to stop.
func (t *Tracking) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Grace)
	defer cancel()
	if err := t.flush(ctx, t.Now()); err != nil {
		n := t.hits.len()
		t.metrics.dropped.Add(float64(n))
		t.Logger.ErrorContext(ctx, "opens and clicks lost, as they can't be handed over", "lost", n, "error", err)
	}
}
