package queue

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// delayedFresh is how long an answer counts that a task waits for its time.
const delayedFresh = 100 * time.Millisecond

// delayedSets remembers whether any task of a Server's queues waits for its time. Each asynq server asks for
// each of its queues, and twice, every half a second. While there is none, they don't ask until look finds
// one. It is safe for concurrent use.
type delayedSets struct {
	looks *redisdb.Looks
	mu    sync.Mutex
	keys  []string // the sets'
	asked time.Time
	none  bool
}

// add adds the sets of a pool's queues.
func (d *delayedSets) add(p Pool) {
	for q := range p.Queues {
		d.keys = append(d.keys, stateKeys(q, Scheduled, Retrying)...)
	}
}

// look looks for tasks that wait for their time, until ctx ends.
func (d *delayedSets) look(ctx context.Context) {
	for delayed := d.looks.For(d.keys...); delayed.Pause(ctx, lookEvery); {
		d.found()
	}
}

// found notes that a task may wait for its time.
func (d *delayedSets) found() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.none = false
}

// empty reports whether all sets were empty when they were last asked for.
func (d *delayedSets) empty(ctx context.Context) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); !d.none && now.Sub(d.asked) >= delayedFresh {
		some, err := d.looks.Any(ctx, d.keys...)
		d.asked, d.none = now, err == nil && !some
	}
	return d.none
}

// isForward reports whether keys are those with which an asynq server moves tasks whose time has come.
func isForward(keys []string) bool {
	if len(keys) != 2 || !isPending(keys[1]) {
		return false
	}
	_, state, _ := strings.Cut(keys[0], "}:")
	return state == string(Scheduled) || state == string(Retrying)
}
