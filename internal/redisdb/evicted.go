package redisdb

import (
	"context"
	"fmt"
)

// Evicted returns how many keys Redis has evicted since it started, or since its statistics were reset
// (CONFIG RESETSTAT). In a Cluster it is the sum over the masters. Anything but 0
// means that email may be lost. It fails if Redis cannot be queried.
func (db *DB) Evicted(ctx context.Context) (int64, error) {
	infos, err := db.infos(ctx, "stats")
	if err != nil {
		return 0, fmt.Errorf("ask redis for evicted keys: %w", err)
	}
	var evicted int64
	for _, info := range infos {
		evicted += number(info, "evicted_keys")
	}
	return evicted, nil
}
