package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
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

// Run renews the leases of this process, writes notes of queued tasks, sweeps, and applies retention, until
// ctx ends. A long comparison of records and tasks does not delay the repair after a crash.
func (o *Outbox) Run(ctx context.Context) error {
	if err := o.store.clock.calibrate(ctx, o.store.DB.Client()); err != nil {
		o.store.log.WarnContext(ctx, "clock not calibrated yet", "error", err)
	}
	sweeper, retention := newSweeper(o.Delivery), &retention{d: o.Operations}
	var wg sync.WaitGroup
	wg.Go(func() { o.Delivery.leases.Run(ctx) })
	wg.Go(func() { o.store.queued.run(ctx) })
	swept, compared := o.store.work(keys.swept), o.store.work(keys.compared)
	wg.Go(func() { o.repeat(ctx, "mend", sweeper.mend, swept.Pause, sweepEvery) })
	wg.Go(func() { o.repeat(ctx, "compare", sweeper.compare, compared.Pause, sweepEvery) })
	wg.Go(func() { o.repeat(ctx, "retention", retention.check, redisdb.Pause, retentionCheck) })
	wg.Go(func() { o.repeat(ctx, "clock", o.store.calibrate, redisdb.Pause, calibrateEvery) })
	for p := range o.store.DB.Partitions() {
		c := counting{Counts: o.Counts, partition: p}
		wg.Go(func() { o.repeat(ctx, "rates", c.next, c.pause, ratesEvery) })
	}
	wg.Wait()
	return nil
}

// calibrateEvery is how often the clock is compared with Redis' clock, even if there is nothing to sweep.
const calibrateEvery = 5 * time.Second

// repeat calls step every so often until ctx ends.
func (o *Outbox) repeat(ctx context.Context, name string, step func(context.Context) error,
	pause func(context.Context, time.Duration) bool, every time.Duration) {
	for {
		if err := step(ctx); err != nil && ctx.Err() == nil {
			o.store.log.WarnContext(ctx, "sweep incomplete", "step", name, "error", err)
		}
		if !pause(ctx, every) {
			return
		}
	}
}
