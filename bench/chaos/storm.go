package main

import (
	"context"
	"sync"
	"time"

	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testproxy"
)

// trouble is one way in which a target can fail.
type trouble struct {
	kind              string
	weight            int
	shortest, longest time.Duration
	begin             func(dice float64)
	end               func()
}

// target is where things go wrong, one at a time.
type target struct {
	name          string
	calmest, calm time.Duration // the longest and the shortest time without trouble
	troubles      []trouble
}

// attack is a trouble with its time.
type attack struct {
	trouble
	at, length time.Duration
	dice       float64
}

// schedule plans the troubles of a target for so long; calm is what its times without trouble are multiplied
// with. It follows from these, the seed and the target alone.
func (p target) schedule(seed uint64, length time.Duration, calm float64) []attack {
	r := random(seed, p.name)
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(r.Float64()*float64(high-low))
	}
	total := 0
	for _, t := range p.troubles {
		total += t.weight
	}
	var plan []attack
	rest := func(shortest time.Duration) time.Duration {
		return time.Duration(calm * float64(between(shortest, p.calmest)))
	}
	for at := rest(0); at < length; at += rest(p.calm) {
		n, which := r.IntN(total), 0
		for n >= p.troubles[which].weight {
			n -= p.troubles[which].weight
			which++
		}
		t := p.troubles[which]
		a := attack{trouble: t, at: at, length: between(t.shortest, t.longest), dice: r.Float64()}
		plan = append(plan, a)
		at += a.length
	}
	return plan
}

// storm makes the troubles of all targets, each on its own, until ctx ends; what is then still wrong is
// ended.
func storm(ctx context.Context, o options, l *ledger, targets []target) {
	began := time.Now()
	var all sync.WaitGroup
	for _, p := range targets {
		all.Go(func() {
			for _, a := range p.schedule(o.seed, o.length, o.calm) {
				if rig.Wait(ctx, a.at-time.Since(began)) != nil {
					return
				}
				over := l.trouble(a.kind, p.name)
				a.begin(a.dice)
				_ = rig.Wait(ctx, a.length)
				a.end()
				over()
			}
		})
	}
	all.Wait()
}

// targets are all that can go wrong in a testbed.
func (h *testbed) targets(ctx context.Context, watching *sync.WaitGroup) []target {
	lease := h.o.lease
	all := h.redisTargets(ctx)
	for _, p := range h.workers {
		all = append(all, target{p.name, 20 * time.Second, 5 * time.Second, []trouble{
			{"worker killed", 2, 0, 3 * time.Second, func(float64) { h.killWorker(ctx, p, watching) }, p.want},
			{"worker frozen, shorter than its lease", 1, lease / 10, lease * 8 / 10, func(float64) { p.freeze() },
				p.thaw},
			{"worker frozen, longer than its lease", 1, lease * 12 / 10, lease * 2, func(float64) { p.freeze() },
				p.thaw},
		}}, lineTroubles("smtp line", p.name, p.smtpLine, lease))
	}
	for _, p := range h.apis {
		all = append(all, target{p.name, 20 * time.Second, 6 * time.Second, []trouble{
			{"api killed", 2, 0, 2 * time.Second, func(float64) { p.kill() }, p.want},
			{"api frozen", 1, 500 * time.Millisecond, lease * 12 / 10, func(float64) { p.freeze() }, p.thaw},
		}}, lineTroubles("client line", p.name, p.apiLine, lease))
	}
	all = append(all, target{"relays", 20 * time.Second, 5 * time.Second,
		h.moods("relays", func(m mood) { h.relays.mood.Store(int32(m)) })})
	for n, r := range h.receivers {
		all = append(all, lineTroubles("webhook line", r.name, h.hookLines[n], lease),
			target{r.name, 20 * time.Second, 5 * time.Second,
				h.moods("receiver", func(m mood) { r.mood.Store(int32(m)) })})
	}
	return all
}

// redisTargets are all that can go wrong with Redis, and between it and the processes.
func (h *testbed) redisTargets(ctx context.Context) []target {
	if h.cluster != nil {
		return []target{h.siege(ctx)}
	}
	server := h.servers[0]
	all := []target{{"redis", 60 * time.Second, 20 * time.Second, []trouble{
		{"redis killed", 3, 0, 3 * time.Second, func(float64) { server.kill() }, server.want},
		{"redis frozen", 1, 500 * time.Millisecond, 5 * time.Second, func(float64) { server.freeze() },
			server.thaw},
	}}}
	for _, p := range h.processes() {
		all = append(all, lineTroubles("redis line", p.name, p.redisLine, h.o.lease))
	}
	return all
}

// moods are the ways in which a peer fails as a whole.
func (h *testbed) moods(who string, set func(mood)) []trouble {
	fine := func() { set(well) }
	in := func(m mood) func(float64) { return func(float64) { set(m) } }
	return []trouble{
		{who + " refusing", 1, 500 * time.Millisecond, 4 * time.Second, in(refusing), fine},
		{who + " silent", 1, 500 * time.Millisecond, 3 * time.Second, in(silent), fine},
		{who + " dropping", 1, 200 * time.Millisecond, 2 * time.Second, in(dropping), fine},
	}
}

// lineTroubles are the ways in which a connection fails.
func lineTroubles(kind, name string, line *testproxy.Proxy, lease time.Duration) target {
	return target{kind + " of " + name, 20 * time.Second, 4 * time.Second, []trouble{
		{kind + " cut", 3, 0, 0, func(float64) { line.Cut() }, func() {}},
		{kind + " down", 2, 200 * time.Millisecond, 3 * time.Second, func(float64) { line.Down() }, line.Up},
		{kind + " stalled", 2, 200 * time.Millisecond, lease * 13 / 10, func(float64) { line.Hang() }, line.Up},
		{kind + " without answers, then cut", 3, 50 * time.Millisecond, 2 * time.Second,
			func(float64) { line.Mute() }, func() { line.Cut(); line.Up() }},
		{kind + " breaking in the middle", 2, 500 * time.Millisecond, 3 * time.Second, func(dice float64) {
			line.Snap(100 + int(dice*3000))
			line.Cut()
		}, line.Up},
		{kind + " slow", 1, time.Second, 5 * time.Second, func(dice float64) {
			line.Delay(time.Duration(5+dice*95) * time.Millisecond)
		}, line.Up},
	}}
}

// killWorker kills a worker and follows what it held.
func (h *testbed) killWorker(ctx context.Context, p *postroom, watching *sync.WaitGroup) {
	p.kill()
	watching.Go(func() { h.redis.watch(ctx, kill{worker: p.name}) })
}
