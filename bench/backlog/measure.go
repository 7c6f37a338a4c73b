package main

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// load is the use of resources so far.
type load struct {
	postroom, redis time.Duration // CPU time
	commands        int64         // of Redis, those inside of scripts included
}

// load reads what Redis and one process of Postroom have used.
func (h *house) load(ctx context.Context, p *rig.Process) (load, error) {
	n, err := h.Info(ctx, "Stats", "total_commands_processed")
	return load{postroom: p.CPU(), redis: h.Redis.CPU(), commands: n}, err
}

func (l load) since(before load) load {
	return load{postroom: l.postroom - before.postroom, redis: l.redis - before.redis,
		commands: l.commands - before.commands}
}

func (l load) tell(each string, n int) {
	rig.Tell("  CPU time of "+each+", Postroom + Redis",
		fmt.Sprintf("%s + %s", (l.postroom/time.Duration(n)).Round(time.Microsecond),
			(l.redis/time.Duration(n)).Round(time.Microsecond)))
	rig.Tell("  Redis commands of "+each+", those inside of scripts included",
		fmt.Sprintf("%.1f", float64(l.commands)/float64(n)))
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n>>20) }
