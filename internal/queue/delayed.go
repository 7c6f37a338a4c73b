package queue

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// delayedFresh is how long it counts that no task waited for its time.
const delayedFresh = 100 * time.Millisecond

// delayedSets remembers whether any task of a Server's queues waits for its time. Each asynq server asks for
// each of its queues, and twice, every half a second; while there is none, they ask once together. It is safe
// for concurrent use.
type delayedSets struct {
	mu    sync.Mutex
	keys  []string // of the sets
	asked time.Time
	none  bool
}

// add adds the sets of a pool's queues.
func (d *delayedSets) add(p Pool) {
	for q := range p.Queues {
		d.keys = append(d.keys, stateKeys(q, Scheduled, Retrying)...)
	}
}

// empty reports whether all sets were empty less than delayedFresh ago.
func (d *delayedSets) empty(ctx context.Context, c redis.UniversalClient) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.asked) >= delayedFresh {
		d.asked, d.none = now, !mayExist(ctx, c, d.keys)
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

// mayExist reports whether any of the keys exists. It is true if that can't be asked at once, as in a
// Cluster.
func mayExist(ctx context.Context, c redis.UniversalClient, keys []string) bool {
	if _, cluster := c.(*redis.ClusterClient); cluster {
		return true
	}
	n, err := c.Exists(ctx, keys...).Result()
	return err != nil || n > 0
}
