package main

import (
	"context"
	"fmt"
	"github.com/postroom/postroom/bench/rig"
	"slices"
	"strconv"
	"time"
)

// quantiles of a series of durations.
type quantiles struct{ p50, p99, most time.Duration }

func (q quantiles) String() string { return fmt.Sprintf("%s / %s", q.p50, q.p99) }

func quantilesOf(d []time.Duration) quantiles {
	if len(d) == 0 {
		return quantiles{}
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return round(d[int(q*float64(len(d)-1))]) }
	return quantiles{at(0.5), at(0.99), at(1)}
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// load is what was used so far.
type load struct {
	postroom, redis time.Duration // CPU time
	commands        int64         // of Redis, those inside of scripts included
}

// load asks what Redis and one process of Postroom have used.
func (h *house) load(ctx context.Context, p *rig.Process) (load, error) {
	info, err := h.info(ctx, "stats")
	if err != nil {
		return load{}, err
	}
	n, err := strconv.ParseInt(info["total_commands_processed"], 10, 64)
	if err != nil {
		return load{}, err
	}
	return load{postroom: p.CPU(), redis: h.Redis.CPU(), commands: n}, nil
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
