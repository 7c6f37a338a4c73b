package outbox

import (
	"context"
	"sync"
	"time"
)

// Outbox accepts messages and delivers them. It is safe for concurrent use, and any number of processes may
// share one Redis.
type Outbox struct {
	store      *store
	Intake     *Intake
	Delivery   *Delivery
	Reader     *Reader
	Operations *Operations
	Queues     *Queues
	Facts      *Facts
	Counts     *Counts
	Mailings   *Mailings
}

// New makes an Outbox. Its background work starts with Run; all its methods work without it.
func New(parts Parts, o Options) (*Outbox, error) {
	s, err := newStore(parts, o)
	if err != nil {
		return nil, err
	}
	reader := &Reader{store: s}
	b := &Outbox{store: s, Intake: &Intake{store: s}, Delivery: newDelivery(s), Reader: reader,
		Operations: &Operations{store: s, reader: reader}, Queues: &Queues{s}, Facts: &Facts{s},
		Counts: &Counts{s}}
	b.Mailings = &Mailings{store: s, intake: b.Intake, delivery: b.Delivery}
	if reg := s.opts.Registry; reg != nil {
		reg.MustRegister(collector{b.Queues})
	}
	return b, nil
}

// Handled counts the messages that this process accepted and the attempts that it made since it started. Its
// growth shows the load.
func (o *Outbox) Handled() int64 { return o.store.handled.Load() }

// Run renews the leases of this process, notes what was queued, sweeps, and applies retention, until ctx
// ends. A long comparison of records and tasks does not delay the repair after a crash.
func (o *Outbox) Run(ctx context.Context) error {
	if err := o.store.clock.calibrate(ctx, o.store.DB.Client()); err != nil {
		o.store.log.WarnContext(ctx, "clock not calibrated yet", "error", err)
	}
	sweeper, retention := newSweeper(o.Delivery), &retention{d: o.Operations}
	var wg sync.WaitGroup
	wg.Go(func() { o.Delivery.leases.Run(ctx) })
	wg.Go(func() { o.store.queued.run(ctx) })
	wg.Go(func() { o.repeat(ctx, ratesEvery, "rates", o.Counts.countNew) })
	wg.Go(func() { o.repeat(ctx, sweepEvery, "mend", sweeper.mend) })
	wg.Go(func() { o.repeat(ctx, sweepEvery, "compare", sweeper.compare) })
	wg.Go(func() { o.repeat(ctx, retentionCheck, "retention", retention.check) })
	wg.Wait()
	return nil
}

// repeat calls step every so often until ctx ends.
func (o *Outbox) repeat(ctx context.Context, every time.Duration, name string,
	step func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := step(ctx); err != nil && ctx.Err() == nil {
			o.store.log.WarnContext(ctx, "sweep incomplete", "step", name, "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
