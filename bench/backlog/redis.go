package main

import (
	"context"
	"fmt"
	"github.com/postroom/postroom/bench/rig"
	"strconv"
	"strings"
	"time"
)

// info reads a section of INFO.
func (h *house) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := h.DB.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// used is the memory that Redis uses for what it keeps: without the buffers of the append-only file and of
// clients, which come and go.
func (h *house) used(ctx context.Context) (int64, error) {
	info, err := h.info(ctx, "memory")
	if err != nil {
		return 0, err
	}
	sum := int64(0)
	for name, sign := range map[string]int64{"used_memory": 1, "mem_aof_buffer": -1, "mem_clients_normal": -1} {
		n, err := strconv.ParseInt(info[name], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += sign * n
	}
	return sum, nil
}

// tellWorst tells the slowest command since it was last asked, and what else kept Redis from answering.
func (h *house) tellWorst(ctx context.Context, when string) error {
	slow, err := h.DB.SlowLogGet(ctx, -1).Result()
	if err != nil {
		return err
	}
	worst, what := time.Duration(0), "none took 5 ms"
	for _, s := range slow {
		if s.Duration > worst && !strings.EqualFold(s.Args[0], "SLOWLOG") {
			worst, what = s.Duration, describe(s.Args)
		}
	}
	rig.Row("slowest Redis command "+when, fmt.Sprint(worst.Round(100*time.Microsecond)), "at most 25ms",
		worst <= 25*time.Millisecond)
	rig.Tell("  "+what, fmt.Sprintf("%d over 5 ms", len(slow)))
	events, err := h.DB.Do(ctx, "LATENCY", "LATEST").Slice()
	if err != nil {
		return err
	}
	for _, e := range events {
		if row, ok := e.([]any); ok && len(row) >= 4 && row[0] != "command" {
			rig.Tell(fmt.Sprintf("  Redis busy with: %v", row[0]), fmt.Sprintf("%v ms at most", row[3]))
		}
	}
	return h.forgetWorst(ctx)
}

func (h *house) forgetWorst(ctx context.Context) error {
	if err := h.DB.Do(ctx, "LATENCY", "RESET").Err(); err != nil {
		return err
	}
	return h.DB.Do(ctx, "SLOWLOG", "RESET").Err()
}

// describe names a command for people: a script by its first key.
func describe(args []string) string {
	switch name := strings.ToLower(args[0]); {
	case strings.HasPrefix(name, "eval") && len(args) > 3 && args[2] != "0":
		return fmt.Sprintf("script %.8s, %s", strings.TrimSpace(args[1]), kindOf(args[3]))
	case len(args) > 1:
		return name + " " + kindOf(args[1])
	default:
		return name
	}
}
