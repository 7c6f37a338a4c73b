package main

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

const (
	cutOffFor = 30 * time.Second // how long a process is cut off from Redis
	// deadFor is how long a master is dead at least: the others notice after nodeTimeout, and agree within some
	// seconds.
	deadFor = 5 * time.Second
)

// siege has the failures of a Cluster: a master dies and its replica takes over, or it is back before that; a
// process reaches no node; and both together.
func (h *testbed) siege(ctx context.Context) target {
	var end func() // ends the current failure
	attack := func(kind string, weight int, shortest, longest time.Duration,
		begin func(context.Context, float64) func()) trouble {
		return trouble{kind, weight, shortest, longest, func(dice float64) { end = begin(ctx, dice) },
			func() { end() }}
	}
	return target{"cluster", 25 * time.Second, 12 * time.Second, []trouble{
		attack("cluster: a master killed", 2, deadFor, 2*deadFor, h.killMaster),
		attack("cluster: a master killed, and soon back", 1, 0, nodeTimeout/2, h.killMaster),
		attack("cluster: a process cut off", 1, cutOffFor, cutOffFor, h.cutOff),
		attack("cluster: a process cut off, and a master killed", 2, cutOffFor, cutOffFor, h.cutOffAndKill),
	}}
}

// killMaster kills a master whose replica keeps up, until the returned function is called. To kill another
// would be a second failure before the first is repaired, which one replica can't make good. If there is no
// such master, none is killed.
func (h *testbed) killMaster(ctx context.Context, dice float64) (restart func()) {
	var able []*node
	for _, n := range h.cluster.nodes {
		if n.role(ctx) == replicated {
			able = append(able, n)
		}
	}
	if len(able) == 0 {
		return func() {}
	}
	dead, died := able[int(dice*float64(len(able)))], time.Now()
	over := h.ledger.begins("master killed", dead.name)
	dead.kill()
	return func() {
		for _, n := range h.cluster.nodes {
			if n.role(ctx) == alone {
				h.ledger.nature("cluster: a replica took over", n.name, died)
			}
		}
		dead.want()
		over()
	}
}

// cutOff lets nothing of a process pass to any node, nor back, until the returned function breaks its
// connections.
func (h *testbed) cutOff(_ context.Context, dice float64) (reconnect func()) {
	all := h.processes()
	p := all[int(dice*float64(len(all)))]
	over := h.ledger.begins("cut off from the cluster", p.name)
	for _, n := range h.cluster.nodes {
		n.line.HangOn(login(p.name))
	}
	return func() {
		for _, n := range h.cluster.nodes {
			n.line.CutOff(login(p.name))
		}
		over()
	}
}

// cutOffAndKill does both. The master comes back earlier.
func (h *testbed) cutOffAndKill(ctx context.Context, dice float64) (end func()) {
	reconnect := h.cutOff(ctx, dice)
	restart := h.killMaster(ctx, math.Mod(7*dice, 1))
	var dead sync.WaitGroup
	dead.Go(func() {
		_ = rig.Wait(ctx, deadFor+time.Duration(math.Mod(11*dice, 1)*float64(deadFor)))
		restart()
	})
	return func() { dead.Wait(); reconnect() }
}
