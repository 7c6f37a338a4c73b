package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// deliver has a worker deliver all messages at once.
func (h *house) deliver(ctx context.Context) error {
	rig.Title(fmt.Sprintf("Delivered at once, to a relay that reads %d MB/s off each connection",
		h.o.rate/1_000_000))
	worker, _, err := h.postroom("worker")
	if err != nil {
		return err
	}
	atRest, _ := worker.Resident()
	began := time.Now()
	if err := rig.Until(ctx, 5*time.Minute, 20*time.Millisecond, func() (bool, error) {
		return h.sink.count() >= h.o.messages, nil
	}); err != nil {
		return fmt.Errorf("%d of %d messages arrived: %w", h.sink.count(), h.o.messages, err)
	}
	h.tellTime("delivered", time.Since(began), worker)
	rig.Tell("under way at the same time", fmt.Sprint(h.sink.most()))
	_, most := worker.Resident()
	rig.Tell("memory of the worker process at rest, at most", both(atRest, most))
	return h.tellRedis(ctx)
}

func (h *house) tellTime(what string, took time.Duration, p *rig.Process) {
	rig.Tell(what+" within", took.Round(10*time.Millisecond).String())
	rig.Tell("  CPU time of each in the Postroom process", (p.CPU() / time.Duration(h.o.messages)).Round(
		time.Millisecond).String())
}

// tellRedis prints the memory of Redis and its slowest command.
func (h *house) tellRedis(ctx context.Context) error {
	used, err := h.Info(ctx, "Memory", "used_memory")
	if err != nil {
		return err
	}
	_, most := h.Redis.Resident()
	rig.Tell("memory that Redis uses now, of its process at most", both(used, most))
	worst, args, _, err := h.Slowest(ctx)
	what := cmp.Or(strings.ToLower(strings.Join(args[:min(1, len(args))], "")), "none took 5 ms")
	rig.Tell("slowest Redis command: "+what, worst.String())
	return err
}

func both(one, other int64) string { return fmt.Sprintf("%d MB, %d MB", one>>20, other>>20) }
