package outbox

import (
	"context"
	"time"

	"github.com/postroom/postroom/internal/queue"
)

// A crash is repaired within Options.Lease + sweepEvery. Together they must stay below ten seconds.
const (
	sweepEvery = time.Second
	sweepBatch = 1000            // messages that a script handles in one call
	owedAfter  = 3 * time.Second // how long a message may wait for its task to be noted as queued
	// time between successful sweeps that means an outage of Redis, or that this process was stopped
	outageGap = 3 * time.Second
)

// sweeper repairs what a crash left behind. Every process runs one. Two may run each step at once.
type sweeper struct {
	d        *Delivery
	lastGood time.Time        // when mend last succeeded
	careful  time.Time        // until then no lease is ended, because its holder may still record a result
	places   map[string]place // how far each index has been compared with the queue
}

func newSweeper(d *Delivery) *sweeper { return &sweeper{d: d, places: map[string]place{}} }

// mend wakes messages that lost their worker or their task. After an outage it ends no lease for half a
// lease: the holders record their results first, which would otherwise leave messages in doubt for no reason.
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
	steps := []func(context.Context, int, time.Time) error{s.lapse, s.promote, s.owed, s.release}
	if now.Before(s.careful) {
		steps = steps[1:]
	}
	for p := range s.d.DB.Partitions() {
		for _, step := range steps {
			if err := step(ctx, p, now); err != nil {
				return err
			}
		}
	}
	s.lastGood = s.d.clock.Now() // not now: a long sweep is no outage
	return nil
}

// compare compares records with their tasks, a part of each index in every round. A message whose task is
// missing gets a new one: an operator emptied the queue, or Redis lost its keys.
func (s *sweeper) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.d.clock.ready(ctx, s.d.DB.Client()); err != nil {
		return err
	}
	now := s.d.clock.Now()
	for p := range s.d.DB.Partitions() {
		for _, lane := range lanesOf(queue.Submit) {
			for _, state := range []string{stateWaiting, stateScheduled, stateDelayed} {
				if err := s.match(ctx, p, lane, state, now); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lapse ends the leases that ran out and wakes their messages.
func (s *sweeper) lapse(ctx context.Context, p int, now time.Time) error {
	woken, err := sweepRun(ctx, s.d.store, lapseScript, p, sweepArgs{Now: now, Most: sweepBatch})
	if err != nil {
		return err
	}
	for _, w := range woken {
		s.d.mail.recovered(ctx, w.ID, "its worker died")
		s.d.metrics.recovered.WithLabelValues("lease").Inc()
	}
	s.d.enqueue(ctx, woken...)
	return nil
}

// promote makes scheduled and delayed messages waiting once they are due.
func (s *sweeper) promote(ctx context.Context, p int, now time.Time) error {
	_, err := sweepRun(ctx, s.d.store, promoteScript, p,
		promoteArgs{Now: now, Most: sweepBatch, Window: s.d.opts.Window})
	return err
}

// owed queues the tasks that could not be queued earlier.
func (s *sweeper) owed(ctx context.Context, p int, now time.Time) error {
	owed, err := sweepRun(ctx, s.d.store, owedScript, p, owedArgs{Before: now.Add(-owedAfter), Most: sweepBatch})
	if err != nil {
		return err
	}
	s.d.metrics.recovered.WithLabelValues("owed").Add(float64(len(owed)))
	s.d.enqueue(ctx, owed...)
	return nil
}
