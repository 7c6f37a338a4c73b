package outbox

import (
	"context"
	"sync"
	"time"
)

// The sweeper's clockwork. A crash is repaired within Lease + sweepEvery, so the lease and this must stay
// below ten seconds together.
const (
	sweepEvery = time.Second
	sweepBatch = 1000            // messages a script handles in one go
	owedAfter  = 3 * time.Second // how long a message may wait for its task to be noted as queued
	// a pause between good sweeps that means Redis was away, or this process stopped
	outageGap = 3 * time.Second
)

// sweeper repairs what a crash left behind. Every process runs one; each step is harmless when two do it at
// once.
type sweeper struct {
	d        *Delivery
	lastGood time.Time        // when mend last succeeded
	careful  time.Time        // until then no lease is ended: its holder may just be coming back
	places   map[string]place // how far each index has been compared with the queue
}

func newSweeper(d *Delivery) *sweeper { return &sweeper{d: d, places: map[string]place{}} }

// run mends and compares until ctx ends, each at its own pace: the dead are to be noticed in time, however
// many messages wait.
func (s *sweeper) run(ctx context.Context) {
	var both sync.WaitGroup
	for _, step := range []func(context.Context) error{s.mend, s.compare} {
		both.Go(func() { s.repeat(ctx, step) })
	}
	both.Wait()
}

func (s *sweeper) repeat(ctx context.Context, step func(context.Context) error) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := step(ctx); err != nil && ctx.Err() == nil {
			s.d.log.WarnContext(ctx, "sweep incomplete", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// mend wakes what lost its worker or its wake-up. After an outage it waits for a lease's length before it
// ends any: whoever holds one has an answer to record first, and would find its message in doubt for no
// reason.
func (s *sweeper) mend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.d.clock.calibrate(ctx, s.d.DB.Client()); err != nil {
		return err
	}
	now := s.d.clock.Now()
	if !s.lastGood.IsZero() && now.Sub(s.lastGood) > outageGap {
		s.careful = now.Add(s.d.opts.Lease / 2)
	}
	steps := []func(context.Context, int, time.Time) error{s.promote, s.owed, s.release}
	if !now.Before(s.careful) {
		steps = append([]func(context.Context, int, time.Time) error{s.lapse}, steps...)
	}
	for p := range s.d.DB.Partitions() {
		for _, step := range steps {
			if err := step(ctx, p, now); err != nil {
				return err
			}
		}
	}
	s.lastGood = s.d.clock.Now() // not now: a round that has much to do is no outage
	return nil
}

// compare holds the records against the queue.
func (s *sweeper) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.d.clock.ready(ctx, s.d.DB.Client()); err != nil {
		return err
	}
	now := s.d.clock.Now()
	for p := range s.d.DB.Partitions() {
		if err := s.match(ctx, p, now); err != nil {
			return err
		}
	}
	return nil
}

// lapse ends the leases that ran out and wakes their messages.
func (s *sweeper) lapse(ctx context.Context, p int, now time.Time) error {
	rows, err := sweepRun(ctx, s.d.store, lapseScript, p, sweepArgs{Now: now, Most: sweepBatch})
	if err != nil {
		return err
	}
	woken := make([]wakeup, len(rows))
	for i, r := range rows {
		woken[i] = wakeup{id: r.ID, lane: r.Lane, epoch: r.Epoch}
		s.d.mail.recovered(ctx, r.ID, "its worker died")
		s.d.metrics.recovered.WithLabelValues("lease").Inc()
	}
	s.d.enqueue(ctx, woken...)
	return nil
}

// promote makes delayed messages waiting when they are due.
func (s *sweeper) promote(ctx context.Context, p int, now time.Time) error {
	_, err := sweepRun(ctx, s.d.store, promoteScript, p, sweepArgs{Now: now, Most: sweepBatch})
	return err
}

// owed queues the tasks that accept or a wake-up could not.
func (s *sweeper) owed(ctx context.Context, p int, now time.Time) error {
	rows, err := sweepRun(ctx, s.d.store, owedScript, p, owedArgs{Before: now.Add(-owedAfter), Most: sweepBatch})
	if err != nil {
		return err
	}
	due := make([]wakeup, len(rows))
	for i, r := range rows {
		due[i] = wakeup{id: r.ID, lane: r.Lane, epoch: r.Epoch, due: r.Due}
		s.d.metrics.recovered.WithLabelValues("owed").Inc()
	}
	s.d.enqueue(ctx, due...)
	return nil
}
