package main

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/redisdb"
)

// Of sixteen kills so many hit Redis, and so many an API process. The others hit workers.
const (
	ofSixteen  = 16
	hitRedis   = 1
	hitAPI     = 3
	workWithin = 300 * time.Millisecond // how long a kill waits for work in hand
	backWithin = 300 * time.Millisecond // how long the killed stay away at most
)

// hail kills one process after the other, so many in all, evenly over the time. Where there are digests, a
// kill waits a moment until a worker has a run in hand. When it returns, all are wanted again.
func (r *round) hail(ctx context.Context) {
	dice, o, began := random(r.h.o.seed, "hail"), r.h.o, time.Now()
	var away sync.WaitGroup
	defer away.Wait()
	for n := 0; n < o.kills; {
		if rig.Wait(ctx, time.Duration(n)*o.length/time.Duration(o.kills)-time.Since(began)) != nil {
			return
		}
		kind, victim := r.victim(dice.IntN(ofSixteen), dice.Int())
		if o.digests > 0 {
			r.h.redis.awaitRuns(ctx)
		}
		_ = rig.Wait(ctx, time.Duration(dice.IntN(10_000))*time.Microsecond) // somewhere between two steps
		if !victim.strike() {
			_ = rig.Wait(ctx, 10*time.Millisecond) // it is not up yet: another one
			continue
		}
		n++
		over, length := r.h.ledger.trouble(kind, victim.name), time.Duration(dice.Int64N(int64(backWithin)))
		away.Go(func() {
			_ = rig.Wait(ctx, length)
			victim.want()
			over()
		})
	}
}

// victim chooses whom a kill hits.
func (r *round) victim(dice, which int) (kind string, _ *program) {
	switch {
	case dice < hitRedis:
		return "redis killed", r.h.servers[which%len(r.h.servers)]
	case dice < hitRedis+hitAPI:
		return "api killed", r.h.apis[which%len(r.h.apis)].program
	}
	return "worker killed", r.h.workers[which%len(r.h.workers)].program
}

// strike kills a process that is up. It reports whether it was.
func (p *program) strike() bool {
	p.mu.Lock()
	up := p.up && p.wanted
	p.mu.Unlock()
	if up {
		p.set(func() {
			p.wanted, p.killed = false, true
			p.signal(syscall.SIGKILL)
		})
	}
	return up
}

// shards is how many prefixes of keys digests are spread over.
const shards = 16

// awaitRuns waits a moment until a worker has a run of digests in hand, and counts when there is one.
func (o *observer) awaitRuns(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, workWithin)
	defer cancel()
	had, err := o.inHand(ctx)
	for now := had; err == nil && rig.Wait(ctx, time.Millisecond) == nil; now, err = o.inHand(ctx) {
		if now > had { // what a dead worker left stays until its lease ends
			o.ledger.mu.Lock()
			o.ledger.digests.struck++
			o.ledger.mu.Unlock()
			return
		}
		had = min(had, now)
	}
}

// inHand returns how many runs and schedules of digests workers have.
func (o *observer) inHand(ctx context.Context) (n int64, _ error) {
	pipe := o.rdb.Pipeline()
	for shard := range shards {
		pipe.ZCard(ctx, redisdb.Key(shard, "digest-open"))
	}
	all, err := pipe.Exec(ctx)
	for _, one := range all {
		if one, ok := one.(interface{ Val() int64 }); ok {
			n += one.Val()
		}
	}
	return n, err
}
