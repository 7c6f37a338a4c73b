package suppression

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

const (
	sweepEvery = time.Hour            // interval of the sweep, which one process runs for all
	sweepPause = 5 * time.Millisecond // between groups, so that mail goes first
	countEvery = 30 * time.Second     // interval of updating the metrics of entries
)

// Run removes expired entries, once an hour by one process for all, and updates the metrics of entries, until
// ctx ends. Then it returns nil. Failures are logged and tried again: an expired entry stops no mail.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		if counts, err := s.Counts(ctx); err == nil {
			s.metrics.counted(counts)
		}
		if s.claimSweep(ctx) {
			removed, err := s.Sweep(ctx)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				s.log.Warn("expired suppressions could not be swept away", "error", err)
			case removed > 0:
				s.log.Info("expired suppressions were swept away", "entries", removed)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// claimSweep reports whether this process sweeps now.
func (s *Store) claimSweep(ctx context.Context) bool {
	mine, err := s.db.Client().SetNX(ctx, redisdb.Key(0, "suppression", "swept"),
		s.now().UTC().Format(time.RFC3339), sweepEvery).Result()
	return err == nil && mine
}

// Sweep removes expired entries. It reads only groups of buckets with an expiry, and pauses after each.
func (s *Store) Sweep(ctx context.Context) (removed int, err error) {
	for shard := range shards {
		marked, err := s.db.Client().Get(ctx, expiringKey(shard)).Bytes()
		if err != nil && !errors.Is(err, redis.Nil) {
			return removed, redisdb.Failed(err, "suppression: look for expired entries")
		}
		for group := range min(groups, 8*len(marked)) {
			if marked[group/8]<<(group%8)&0x80 == 0 {
				continue
			}
			n, err := sweepScript.Run(ctx, s.db.Client(), []string{countsKey(shard)},
				sweepArgs{Group: group, Now: clock(s.now())})
			if err != nil {
				return removed, redisdb.Failed(err, "suppression: sweep expired entries away")
			}
			removed += n
			if !redisdb.Pause(ctx, sweepPause) {
				return removed, ctx.Err()
			}
		}
	}
	return removed, nil
}
