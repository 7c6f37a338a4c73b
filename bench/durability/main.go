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

// everysec is the level that the others are compared with: the default of a persistent Redis, and of the
// embedded one.
const everysec = "appendfsync everysec"

func main() {
	rounds := flag.Int("rounds", 6, "rounds through all levels")
	length := flag.Duration("length", time.Second, "how long each level is measured in a round, twice")
	rate := flag.Int("rate", 100, "submits a second for the latency")
	rig.Main("durability", func(ctx context.Context) error { return run(ctx, *rounds, *length, *rate) })
}

func run(ctx context.Context, rounds int, length time.Duration, rate int) error {
	houses := make([]*house, 0, len(levels))
	for _, l := range levels {
		h := &house{level: l}
		defer h.Close()
		if err := h.open(ctx); err != nil {
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

// result is the result of one level in one round.
type result struct {
	rig.Quantiles         // of a submit at a steady rate
	perSecond     float64 // submits by all clients at once
}

// best takes each figure from the round in which it was best.
func best(rounds []result) result {
	b := rounds[0]
	for _, r := range rounds[1:] {
		b.P50, b.P99, b.perSecond = min(b.P50, r.P50), min(b.P99, r.P99), max(b.perSecond, r.perSecond)
	}
	return b
}

func report(results [][]result) {
	base := best(results[slices.IndexFunc(levels, func(l level) bool { return l.name == everysec })])
	fmt.Printf("\n%-42s %10s %6s %10s %6s %12s %6s\n", "", "p50", "÷", "p99", "÷", "submits/s", "÷")
	for i, l := range levels {
		m := best(results[i])
		fmt.Printf("%-42s %10s %6.2f %10s %6.2f %12.0f %6.2f\n", l.name,
			m.P50, ratio(m.P50, base.P50), m.P99, ratio(m.P99, base.P99), m.perSecond, m.perSecond/base.perSecond)
	}
	fmt.Printf("\n÷: compared with %s\n", everysec)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
