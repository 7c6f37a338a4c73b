package main

import (
	"context"
	"fmt"
	"strconv"
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
	rig.Tell("on their way at the same time", fmt.Sprint(h.sink.most()))
	_, most := worker.Resident()
	rig.Tell("memory of the worker process at rest, at most", both(atRest, most))
	return h.tellRedis(ctx)
}

func (h *house) tellTime(what string, took time.Duration, p *rig.Process) {
	rig.Tell(what+" within", took.Round(10*time.Millisecond).String())
	rig.Tell("  CPU time of each in the Postroom process", (p.CPU() / time.Duration(h.o.messages)).Round(
		time.Millisecond).String())
}

// tellRedis tells the memory of Redis, and what kept it from answering others.
func (h *house) tellRedis(ctx context.Context) error {
	info, err := h.DB.InfoMap(ctx, "memory").Result()
	if err != nil {
		return err
	}
	used, _ := strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
	_, most := h.Redis.Resident()
	rig.Tell("memory that Redis uses now, of its process at most", both(used, most))
	slow, err := h.DB.SlowLogGet(ctx, -1).Result()
	if err != nil {
		return err
	}
	worst, what := time.Duration(0), "none took 5 ms"
	for _, s := range slow {
		if name := strings.ToLower(s.Args[0]); s.Duration > worst && name != "slowlog" {
			worst, what = s.Duration, name
		}
	}
	rig.Tell("slowest Redis command: "+what, worst.Round(100*time.Microsecond).String())
	return h.DB.Do(ctx, "SLOWLOG", "RESET").Err()
}

func both(one, other int64) string { return fmt.Sprintf("%d MB, %d MB", one>>20, other>>20) }
