package redisdb

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// shareFor is how long a measured share is good for. New submits are refused at three quarters of the limit, and no burst fills the
// last quarter within a second.
const shareFor = time.Second

// shareCache remembers the last share of memory, so that a flood of submits asks Redis once a second.
type shareCache struct {
	mu    sync.Mutex
	share float64
	at    time.Time
}

// MemoryShare says how full Redis is: used memory divided by maxmemory, in a Cluster that of the fullest node; 0 when there is no
// limit, and in Memory mode. The answer may be a second old. It fails when Redis can't be asked.
func (db *DB) MemoryShare(ctx context.Context) (float64, error) {
	if db.mode == Memory {
		return 0, nil
	}
	c := &db.share
	c.mu.Lock()
	defer c.mu.Unlock() // others wait for the one that asks; without an answer they couldn't go on either
	if !c.at.IsZero() && time.Since(c.at) < shareFor {
		return c.share, nil
	}
	infos, err := db.infos(ctx, "memory")
	if err != nil {
		return 0, fmt.Errorf("ask redis for its memory: %w", err)
	}
	c.share, c.at = 0, time.Now()
	for _, info := range infos {
		if limit := number(info, "maxmemory"); limit > 0 {
			c.share = max(c.share, float64(number(info, "used_memory"))/float64(limit))
		}
	}
	return c.share, nil
}
