package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// used is the memory that Redis uses for data: without the buffers of the append-only file and of clients,
// which come and go.
func (h *house) used(ctx context.Context) (int64, error) {
	sum := int64(0)
	for name, sign := range map[string]int64{"used_memory": 1, "mem_aof_buffer": -1, "mem_clients_normal": -1} {
		n, err := h.Info(ctx, "Memory", name)
		if err != nil {
			return 0, err
		}
		sum += sign * n
	}
	return sum, nil
}

// tellWorst prints the slowest command since the last call, and what else kept Redis busy.
func (h *house) tellWorst(ctx context.Context, when string) error {
	worst, args, logged, err := h.Slowest(ctx)
	if err != nil {
		return err
	}
	what := "none took 5 ms"
	if args != nil {
		what = describe(args)
	}
	rig.Row("slowest Redis command "+when, worst.String(), "at most 25ms", worst <= 25*time.Millisecond)
	rig.Tell("  "+what, fmt.Sprintf("%d over 5 ms", logged))
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

// describe returns a readable name of a command: for a script, with its first key.
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
