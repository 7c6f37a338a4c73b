package redisdb

import (
	"context"
	"fmt"
)

// Evicted is how many keys Redis has thrown away for want of memory since it started, or since its operator reset its statistics (CONFIG
// RESETSTAT); in a Cluster the sum over its masters; always 0 in Memory mode. Anything but 0 means that mail may be lost. It fails when
// Redis can't be asked.
func (db *DB) Evicted(ctx context.Context) (int64, error) {
	if db.mode == Memory {
		return 0, nil
	}
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
