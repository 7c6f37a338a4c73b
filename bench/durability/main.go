package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// level is one degree of durability.
type level struct {
	name    string
	args    []string // for redis-server
	replica bool
	wait    int // redis.waitReplicas
}

// levels are measured in this order, in each round.
var levels = []level{
	{name: "no persistence", args: []string{"--appendonly", "no"}},
	{name: "appendfsync no", args: []string{"--appendonly", "yes", "--appendfsync", "no"}},
	{name: everysec, args: []string{"--appendonly", "yes", "--appendfsync", "everysec"}},
	{name: "everysec, replica", args: []string{"--appendonly", "yes", "--appendfsync", "everysec"},
		replica: true},
	{name: "everysec, replica, redis.waitReplicas 1", args: []string{"--appendonly", "yes", "--appendfsync",
		"everysec"}, replica: true, wait: 1},
	{name: "appendfsync always", args: []string{"--appendonly", "yes", "--appendfsync", "always"}},
	{name: "always, replica, redis.waitReplicas 1", args: []string{"--appendonly", "yes", "--appendfsync",
		"always"}, replica: true, wait: 1},
}

// everysec is the level that the others are compared with: what Redis does when asked to persist, and the
// embedded one's default.
const everysec = "appendfsync everysec"

func main() {
	rounds := flag.Int("rounds", 6, "rounds through all levels")
	length := flag.Duration("length", time.Second, "how long each level is measured in a round, twice")
	rate := flag.Int("rate", 100, "submits a second for the latency")
	rig.Main("durability", func(ctx context.Context) error { return run(ctx, *rounds, *length, *rate) })
}

func run(ctx context.Context, rounds int, length time.Duration, rate int) error {
	houses := make([]*house, 0, len(levels))
	defer func() {
		for _, h := range houses {
			h.close()
		}
	}()
	for _, l := range levels {
		h, err := open(ctx, l)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		houses = append(houses, h)
	}
	results := make([][]result, len(levels))
	for range rounds {
		for i, h := range houses {
			r, err := h.measure(ctx, length, rate)
			if err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
			results[i] = append(results[i], r)
		}
	}
	report(results)
	return nil
}

// result is what one level came to in one round.
type result struct {
	p50, p99  time.Duration // of a submit at a steady rate
	perSecond float64       // submits, with as many clients as there are at once
}

// best takes each figure from the round where it was best.
func best(rounds []result) result {
	b := rounds[0]
	for _, r := range rounds[1:] {
		b.p50, b.p99, b.perSecond = min(b.p50, r.p50), min(b.p99, r.p99), max(b.perSecond, r.perSecond)
	}
	return b
}

func report(results [][]result) {
	base := best(results[slices.IndexFunc(levels, func(l level) bool { return l.name == everysec })])
	fmt.Printf("\n%-42s %10s %6s %10s %6s %12s %6s\n", "", "p50", "÷", "p99", "÷", "submits/s", "÷")
	for i, l := range levels {
		m := best(results[i])
		fmt.Printf("%-42s %10s %6.2f %10s %6.2f %12.0f %6.2f\n", l.name,
			m.p50.Round(10*time.Microsecond), ratio(m.p50, base.p50), m.p99.Round(10*time.Microsecond),
			ratio(m.p99, base.p99),
			m.perSecond, m.perSecond/base.perSecond)
	}
	fmt.Printf("\n÷: compared with %s\n", everysec)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
