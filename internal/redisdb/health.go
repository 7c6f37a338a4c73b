package redisdb

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// New submits are refused at three quarters of the limit, and no burst fills the last quarter while an
// answer of this age is used.
const (
	healthFresh = time.Second // younger answers are used as they are
	// younger ones are used while a new one is fetched, so that no submit waits for it
	healthUsable  = 3 * time.Second
	healthTimeout = 2 * time.Second
)

// health is what decides whether Redis can accept more.
type health struct {
	share float64 // share of used memory, on the fullest node; 0 for no limit
	// that are up to date, of the master with the fewest; counted only where some are waited for
	replicas int
}

// healthCache caches the last result, so that many submits query Redis once a second.
type healthCache struct {
	mu     sync.Mutex
	last   health
	at     time.Time
	asking singleflight.Group
}

// MemoryShare returns used memory divided by maxmemory, in a Cluster for the fullest node, or 0 if there is
// no limit. The value may be three seconds old. It fails if Redis cannot be queried, or if ctx ends first.
func (db *DB) MemoryShare(ctx context.Context) (float64, error) {
	h, err := db.health(ctx)
	return h.share, err
}

// AskMemory has the next call of MemoryShare query Redis.
func (db *DB) AskMemory() {
	db.state.mu.Lock()
	defer db.state.mu.Unlock()
	db.state.at = time.Time{}
}

// health returns the cached result, or queries Redis.
func (db *DB) health(ctx context.Context) (health, error) {
	c := &db.state
	c.mu.Lock()
	age, last := time.Since(c.at), c.last
	c.mu.Unlock()
	if age < healthFresh {
		return last, nil
	}
	// others wait for it too, so it doesn't end with this caller
	asked := c.asking.DoChan("", func() (any, error) { return db.askHealth(context.WithoutCancel(ctx)) })
	if age < healthUsable {
		return last, nil
	}
	return Await[health](ctx, asked)
}

// askHealth runs a query and caches a successful result.
func (db *DB) askHealth(ctx context.Context) (health, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	sections := []string{"memory"}
	if db.wait.replicas > 0 {
		sections = append(sections, "replication")
	}
	infos, err := db.infos(ctx, sections...)
	if err != nil {
		return health{}, fmt.Errorf("ask redis for its memory: %w", err)
	}
	h := health{replicas: math.MaxInt}
	for _, info := range infos {
		if limit := number(info, "maxmemory"); limit > 0 {
			h.share = max(h.share, float64(number(info, "used_memory"))/float64(limit))
		}
		h.replicas = min(h.replicas, goodReplicas(info))
	}
	c := &db.state
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.at = h, time.Now()
	return h, nil
}
