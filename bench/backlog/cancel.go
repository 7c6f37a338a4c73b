package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// slowForOthers is the limit for a request beside a bulk cancel.
const slowForOthers = 100 * time.Millisecond

// bystander is a request that is repeated while something else runs.
type bystander struct {
	name  string
	every time.Duration
	do    func(ctx context.Context, i int) error
	took  []time.Duration
}

// cancel cancels half of the messages in one request.
func (h *house) cancel(ctx context.Context) error {
	rig.Title("Cancelling half of them: DELETE /v1/outbox?tag=")
	bystanders := []*bystander{
		{name: "GET /health", every: 20 * time.Millisecond, do: func(ctx context.Context, _ int) error {
			_, err := api.GetHealth.Do(ctx, h.client)
			return err
		}},
		{name: "submit", every: 20 * time.Millisecond, do: func(ctx context.Context, i int) error {
			return h.submit(ctx, h.request(2*(h.o.messages+i)+1)) // none of the cancelled ones
		}},
		{name: "GET /v1/outbox", every: 200 * time.Millisecond, do: func(ctx context.Context, _ int) error {
			_, err := api.ListOutbox.Do(ctx, h.client, api.OutboxQuery{})
			return err
		}},
	}
	group, running := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(running)
	defer stop()
	for _, b := range bystanders {
		group.Go(func() error { return b.run(running) })
	}
	go progress(running, "left, of all", h.o.messages, func() int {
		page, _ := api.ListOutbox.Do(running, h.client, api.OutboxQuery{PageSize: 1}) // only to show progress
		return page.Total
	})
	began := time.Now()
	answer, err := api.CancelMessages.Do(ctx, h.client, api.OutboxQuery{Tag: spring})
	took := time.Since(began)
	stop()
	if err := cmp.Or(group.Wait(), err); err != nil {
		return err
	}
	if surplus := answer.Deleted - (h.o.messages+1)/2; surplus < 0 || surplus > int(h.refused.Load()) {
		return fmt.Errorf("%d messages were cancelled, want %d", answer.Deleted, (h.o.messages+1)/2)
	}
	rig.Tell(fmt.Sprintf("%d messages cancelled", answer.Deleted), rig.Round(took).String())
	rig.Tell("  rate", rig.PerSecond(float64(answer.Deleted)/took.Seconds()))
	for _, b := range bystanders {
		q := rig.QuantilesOf(b.took)
		rig.Row(b.name+" meanwhile, p50 / p99", q.String(), fmt.Sprintf("p99 %s", slowForOthers),
			q.P99 <= slowForOthers)
	}
	left, err := h.DB.LLen(ctx, "asynq:{submit}:pending").Result()
	if err != nil {
		return err
	}
	tasks := int(left) - (h.o.messages-answer.Deleted)*98/100 - len(bystanders[1].took)
	rig.Tell("tasks of cancelled messages left in the queue, about", fmt.Sprint(max(0, tasks)))
	return h.tellWorst(ctx, "meanwhile")
}

func (b *bystander) run(ctx context.Context) error {
	tick := time.NewTicker(b.every)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		sent := time.Now()
		if err := b.do(context.WithoutCancel(ctx), i); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		b.took = append(b.took, time.Since(sent))
	}
}
