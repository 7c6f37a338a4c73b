package main

import (
	"context"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// kill is a worker killed while it held messages, and how long those took to move on.
type kill struct {
	worker  string
	calm    bool // nothing else was wrong
	at      time.Time
	took    time.Duration // until the last message was begun again, or had ended
	pending []string      // what never moved on
}

// watch follows the messages that a worker just killed has held, until ctx ends. No record names them, but a
// live worker renews its leases, and a dead one does not. A message has moved on when another attempt has
// begun, or it is delayed, or it ended.
func (o *observer) watch(ctx context.Context, k kill) {
	k.at = time.Now()
	before, err := o.held(ctx)
	if err != nil || len(before) == 0 {
		return // Redis is away too, or there was nothing to hold
	}
	last := time.Now()
	for len(before) > 0 && rig.Wait(ctx, 100*time.Millisecond) == nil {
		left, err := o.unmoved(ctx, before)
		if err != nil {
			continue
		}
		if len(left) < len(before) {
			last = time.Now()
		}
		before = left
	}
	for _, h := range before {
		k.pending = append(k.pending, h.id)
	}
	k.took = last.Sub(k.at)
	o.ledger.recovered(k)
}

// killInCalm kills one worker after the other while nothing else is wrong, each in the middle of messages
// with a slow relay. It watches how soon those messages move on.
func (r *round) killInCalm(ctx context.Context) error {
	if r.h.o.messages == 0 {
		return nil
	}
	r.h.relays.slow.Store(true)
	defer r.h.relays.slow.Store(false)
	for n, p := range r.h.workers {
		first := r.h.o.messages + n*calmMessages
		r.clients.load(ctx, first, calmMessages, time.Second)
		over := r.h.ledger.trouble("worker killed in calm", p.name)
		p.kill()
		watched, cancel := context.WithTimeout(ctx, r.h.o.drain)
		r.h.redis.watch(watched, kill{worker: p.name, calm: true})
		cancel()
		over()
		p.want()
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// calmMessages is how many messages are submitted before each kill in calm.
const calmMessages = 40

// unmoved are those messages that are still as their holder left them.
func (o *observer) unmoved(ctx context.Context, before []holding) ([]holding, error) {
	var left []holding
	byPartition := map[int][]string{}
	was := map[string]holding{}
	for _, h := range before {
		byPartition[h.partition] = append(byPartition[h.partition], h.id)
		was[h.id] = h
	}
	for p, ids := range byPartition {
		now, err := o.look(ctx, p, ids)
		if err != nil {
			return nil, err
		}
		for _, h := range now {
			old := was[h.id]
			renewed := h.lease != old.lease
			if h.state == "" || h.fence != old.fence || renewed || h.state != "active" && h.state != "waiting" {
				continue
			}
			left = append(left, old)
		}
	}
	return left, nil
}

func (l *ledger) recovered(k kill) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kills = append(l.kills, k)
}
