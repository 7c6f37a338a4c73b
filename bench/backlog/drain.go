package main

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// drain has a worker deliver the remaining messages, except those with a later time.
func (h *house) drain(ctx context.Context) error {
	page, err := api.ListOutbox.Do(ctx, h.client, api.OutboxQuery{State: api.Waiting, PageSize: 1})
	if err != nil {
		return err
	}
	n := page.Total
	rig.Title(fmt.Sprintf("Delivering the %d that are left, by one worker process, %d at once", n, h.o.workers))
	worker, _, err := h.postroom("worker", map[string]string{"workers.submit": fmt.Sprint(h.o.workers)})
	if err != nil {
		return err
	}
	before, err := h.load(ctx, worker)
	if err != nil {
		return err
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go progress(watched, "delivered", n, h.sink.Count)
	at, err := h.arrivals(ctx, n)
	if err != nil {
		return err
	}
	after, err := h.load(ctx, worker)
	if err != nil {
		return err
	}
	first, last := float64(n/10)/(at[1]-at[0]).Seconds(), float64(n/10)/(at[10]-at[9]).Seconds()
	rig.Tell("delivered, in all", rig.PerSecond(float64(n)/at[10].Seconds()))
	rig.Tell("delivered, the first tenth", rig.PerSecond(first))
	rig.Tell("delivered, the last tenth", rig.PerSecond(last))
	rig.Row("  last ÷ first", fmt.Sprintf("%.2f", last/first), "at least 0.8", last/first >= 0.8)
	after.since(before).tell("a delivery", n)
	_, most := worker.Resident()
	rig.Tell("memory of the worker process at most", megabytes(most))
	if got := h.sink.Count(); got != n {
		return fmt.Errorf("the sink has %d messages, want %d", got, n)
	}
	return h.tellWorst(ctx, "meanwhile")
}

// arrivals returns when the sink had each tenth of n messages, counted from the first one.
func (h *house) arrivals(ctx context.Context, n int) ([11]time.Duration, error) {
	var at [11]time.Duration
	var began time.Time
	for tenth := range at {
		err := rig.Until(ctx, 30*time.Minute, often, func() (bool, error) {
			return h.sink.Count() >= max(1, n*tenth/10), nil
		})
		if err != nil {
			return at, fmt.Errorf("%d of %d messages were delivered: %w", h.sink.Count(), n, err)
		}
		if tenth == 0 {
			began = time.Now()
		}
		at[tenth] = time.Since(began)
	}
	// The results of the last ones must be recorded.
	return at, rig.Until(ctx, time.Minute, often, func() (bool, error) {
		page, err := api.ListOutbox.Do(ctx, h.client, api.OutboxQuery{State: api.Active, PageSize: 1})
		return page.Total == 0, err
	})
}
