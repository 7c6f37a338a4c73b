package outbox

import (
	"context"
	"sync"
)

// Outbox accepts messages and delivers them. It is safe for concurrent use, and any number of processes may
// share one Redis.
type Outbox struct {
	*store
	*Intake
	*Delivery
	*Reader
	*Desk
	*Queues
	*Facts
	retention *retention
}

// New makes an Outbox. Nothing runs until Run is called; Submit and the operator's verbs work without it.
func New(parts Parts, o Options) (*Outbox, error) {
	s, err := newStore(parts, o)
	if err != nil {
		return nil, err
	}
	reader := &Reader{store: s}
	desk := &Desk{store: s, reader: reader}
	b := &Outbox{
		store: s, Intake: &Intake{s}, Delivery: newDelivery(s), Reader: reader, Desk: desk, Queues: &Queues{s},
		Facts:     &Facts{s},
		retention: &retention{d: desk},
	}
	if reg := s.opts.Registry; reg != nil {
		reg.MustRegister(collector{b.Queues})
	}
	return b, nil
}

// Handled counts the messages this process accepted and the attempts it made, since it began: how fast it
// grows says how much there is to do.
func (o *Outbox) Handled() int64 { return o.handled.Load() }

// Run keeps the outbox going until ctx ends: it renews the leases this process holds, notes what was queued,
// sweeps, and applies retention.
func (o *Outbox) Run(ctx context.Context) error {
	if err := o.clock.calibrate(ctx, o.DB.Client()); err != nil {
		o.log.WarnContext(ctx, "clock not calibrated yet", "error", err)
	}
	var wg sync.WaitGroup
	for _, part := range []func(context.Context){o.leases.run, o.queued.run, newSweeper(o.Delivery).run,
		o.retention.run} {
		wg.Go(func() { part(ctx) })
	}
	wg.Wait()
	return nil
}
