package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	tendEvery = time.Second
	// leaseLeft is the least time a live worker's lease has left: asynq renews leases every 5 s to 30 s, and Redis may stall for 3 s. A longer
	// stall has tasks run beside themselves, which their handlers must fence off anyway.
	leaseLeft  = 22 * time.Second
	reapMost   = 500
	pruneEvery = time.Hour
)

// tend does, every second until ctx ends, what asynq leaves undone: tasks of dead workers go back, queues stay known, leftovers go. Every
// process does it for all its queues, so that it is done while any process lives.
func (s *Server) tend(ctx context.Context) {
	ticker := time.NewTicker(tendEvery)
	defer ticker.Stop()
	for {
		if err := s.tendOnce(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug("queues not tended", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Server) tendOnce(ctx context.Context) error {
	if err := register(ctx, s.redis, s.queues); err != nil {
		return err
	}
	for _, q := range s.queues {
		returned, removed, err := reap(ctx, s.redis, q, time.Now())
		if err != nil {
			return err
		}
		if returned+removed > 0 {
			s.log.Warn("tasks without a worker taken back", "queue", q, "returned", returned, "removed", removed)
		}
	}
	return s.pruneInTurn(ctx)
}

// pruneInTurn prunes if no process has done so within the hour.
func (s *Server) pruneInTurn(ctx context.Context) error {
	mine, err := s.redis.SetNX(ctx, prunedKey, time.Now().Unix(), pruneEvery).Result()
	if err != nil || !mine {
		return err
	}
	pruned, err := NewControl(s.redis).Prune(ctx, s.queues...)
	if pruned != (Pruned{}) {
		s.log.Info("queues pruned", "expired", pruned.Expired, "orphans", pruned.Orphans, "returned", pruned.Returned, "unnamed", pruned.Unnamed)
	}
	return err
}

// reap returns the tasks of one queue whose workers are dead, by reap.lua.
func reap(ctx context.Context, c redis.UniversalClient, queue string, now time.Time) (returned, removed int64, err error) {
	keys := []string{stateKey(queue, Active), leaseKey(queue), stateKey(queue, Waiting)}
	n, err := reapScript.Run(ctx, c, keys, now.Add(leaseLeft).Unix(), taskPrefix(queue), now.UnixNano(), reapMost).Int64Slice()
	if err == nil && len(n) != 2 {
		err = fmt.Errorf("%d values instead of 2", len(n))
	}
	if err != nil {
		return 0, 0, fmt.Errorf("reap queue %s: %w", queue, err)
	}
	return n[0], n[1], nil
}
