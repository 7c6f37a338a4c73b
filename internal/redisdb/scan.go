package redisdb

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// scanned is about how many keys a server looks at for one call of SCAN, which takes it half a millisecond.
const scanned = 1000

// Scan calls do with the keys that match a pattern, some at a time, on every server that accepts writes. A
// key that exists all the while is visited once or more. The first error ends it.
func (db *DB) Scan(ctx context.Context, match string, do func(keys []string) error) error {
	var mu sync.Mutex // the servers of a Cluster are scanned concurrently
	return db.eachMaster(ctx, func(ctx context.Context, c redis.Cmdable) error {
		for cursor := uint64(0); ; {
			keys, next, err := c.Scan(ctx, cursor, match, scanned).Result()
			if err != nil {
				return Failed(err, "scan the keys of Redis")
			}
			mu.Lock()
			err = do(keys)
			mu.Unlock()
			if cursor = next; err != nil || cursor == 0 {
				return err
			}
		}
	})
}
