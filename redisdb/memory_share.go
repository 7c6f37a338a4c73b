package redisdb

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// New submits are refused at three quarters of the limit, and no burst fills the last quarter while an answer of this age is used.
const (
	shareFresh   = time.Second     // younger answers are used as they are
	shareUsable  = 3 * time.Second // younger ones are used while a new one is fetched, so that no submit waits for it
	shareTimeout = 2 * time.Second
)

// shareCache remembers the last share of memory, so that a flood of submits asks Redis once a second.
type shareCache struct {
	mu    sync.Mutex
	share float64
	at    time.Time
	query *shareQuery // under way, or nil
}

// shareQuery is one question to Redis that any number of callers wait for.
type shareQuery struct {
	done  chan struct{} // closed when share and err are set
	share float64
	err   error
}

// MemoryShare says how full Redis is: used memory divided by maxmemory, in a Cluster that of the fullest node; 0 when there is no
// limit, and in Memory mode. The answer may be three seconds old. It fails when Redis can't be asked, or when ctx ends first.
func (db *DB) MemoryShare(ctx context.Context) (float64, error) {
	if db.mode == Memory {
		return 0, nil
	}
	c := &db.share
	c.mu.Lock()
	age, share := time.Since(c.at), c.share
	if age < shareFresh {
		c.mu.Unlock()
		return share, nil
	}
	q := c.query
	if q == nil {
		q = &shareQuery{done: make(chan struct{})}
		c.query = q
		go db.askShare(context.WithoutCancel(ctx), q) // others wait for it too, so it doesn't end with this caller
	}
	c.mu.Unlock()
	if age < shareUsable {
		return share, nil
	}
	select {
	case <-q.done:
		return q.share, q.err
	case <-ctx.Done():
		return 0, fmt.Errorf("ask redis for its memory: %w", ctx.Err())
	}
}

// askShare answers a query, and keeps the answer if there is one.
func (db *DB) askShare(ctx context.Context, q *shareQuery) {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	infos, err := db.infos(ctx, "memory")
	if err != nil {
		q.err = fmt.Errorf("ask redis for its memory: %w", err)
	}
	for _, info := range infos {
		if limit := number(info, "maxmemory"); limit > 0 {
			q.share = max(q.share, float64(number(info, "used_memory"))/float64(limit))
		}
	}
	c := &db.share
	c.mu.Lock()
	defer c.mu.Unlock()
	c.query = nil
	if err == nil {
		c.share, c.at = q.share, time.Now()
	}
	close(q.done)
}
