package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

const (
	tendEvery = time.Second
	// leaseLeft is the least time a live worker's lease has left: asynq renews leases every 5 s to 30 s,
	// and may be 3 s late.
	leaseLeft = 22 * time.Second
	// steadyFor is how long Redis must have responded before expired leases count as dead workers'. After a
	// stall all leases are old. Within this time live workers renew theirs and acknowledge the tasks that they
	// have finished.
	steadyFor  = 6 * time.Second
	reapMost   = 500
	pruneEvery = time.Hour
	// Lost tasks are put back within recoverEvery + recoverTry of their loss, or later while there are more than
	// 240,000 keys. A key takes about a microsecond, so that the look takes one part in fifty of the time.
	recoverEvery = 12 * time.Second
	recoverTry   = 3 * time.Second // between looks whether it is this process's turn
	restAKey     = 50 * time.Microsecond
)

// tend does every second while there are tasks, until ctx ends, what asynq does not: it returns the tasks of
// dead workers, registers queues and removes leftovers. Every process does it for all its queues, so that it
// is done while any process lives.
func (s *Server) tend(ctx context.Context) {
	var steady steadiness
	var tended []string // keys: nothing has to be done while none of them exists
	for _, q := range s.queues {
		tended = append(tended, leaseKey(q), stateKey(q, Active), stateKey(q, Completed))
		if s.keepBuried {
			tended = append(tended, stateKey(q, Archived))
		}
	}
	for work := s.looks.For(tended...); ; {
		begun := time.Now()
		err := register(ctx, s.redis, s.queues)
		reliable := steady.observe(begun, time.Now(), err == nil)
		if err == nil && reliable {
			err = s.reapAll(ctx)
		}
		if err == nil {
			err = s.trimKept(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Debug("queues not tended", "error", err)
		}
		if !work.Pause(ctx, tendEvery) {
			return
		}
	}
}

// steadiness tracks whether Redis, and this process, have run without a stall. Its zero value is steady: a
// process that starts after a crash must clean up immediately.
type steadiness struct {
	last  time.Time // end of the last observation
	since time.Time // end of the last stall; zero means none seen
}

// observe records a call to Redis, one a second, and reports whether leases are reliable at its end.
func (s *steadiness) observe(begun, ended time.Time, ok bool) bool {
	const late = 3 * time.Second
	if !ok || ended.Sub(begun) > late || (!s.last.IsZero() && begun.Sub(s.last) > late) {
		s.since = ended
	}
	s.last = ended
	return ok && (s.since.IsZero() || ended.Sub(s.since) >= steadyFor)
}

// reapAll returns the tasks of dead workers in all queues.
func (s *Server) reapAll(ctx context.Context) error {
	for _, q := range s.queues {
		returned, removed, err := reap(ctx, s.redis, q, time.Now())
		if err != nil {
			return err
		}
		if returned > 0 {
			announce(ctx, s.redis, q)
		}
		if returned+removed > 0 {
			s.log.Warn("tasks without a worker returned to the "+
				"queue", "queue", q, "returned", returned, "removed", removed)
		}
	}
	return nil
}

// trimKept removes the completed tasks beyond Keep, and with KeepBuried the buried ones that are too old or
// too many, some hundreds a second of each queue.
func (s *Server) trimKept(ctx context.Context) error {
	for _, q := range s.queues {
		err := s.trim(ctx, q, Completed, trimArgs{Keep: s.keep(q)})
		if err == nil && s.keepBuried {
			err = s.trim(ctx, q, Archived, trimArgs{Keep: s.keep(q), Oldest: time.Now().Add(-keepFor).Unix()})
		}
		if err != nil {
			return fmt.Errorf("trim the done tasks of queue %s: %w", q, err)
		}
	}
	return nil
}

func (s *Server) trim(ctx context.Context, queue string, state State, args trimArgs) (err error) {
	args.Tasks, args.Keep, args.Most = taskPrefix(queue), max(args.Keep, 0), reapMost
	for n := reapMost; n == reapMost && err == nil && ctx.Err() == nil; {
		n, err = trimScript.Run(ctx, s.redis, stateKeys(queue, state), args)
	}
	return err
}

// prune prunes the queues and puts lost tasks back, until ctx ends, when it is this process's turn.
func (s *Server) prune(ctx context.Context) {
	for {
		mine, err := s.pruneInTurn(ctx)
		if err == nil {
			err = register(ctx, s.redis, s.queues) // they may have been deleted
		}
		if err != nil && ctx.Err() == nil {
			s.log.Debug("queues not pruned", "error", err)
		}
		pause := recoverTry
		if mine && err == nil {
			pause = recoverEvery // no process does it before
		}
		if !redisdb.Pause(ctx, pause) {
			return
		}
	}
}

// pruneInTurn prunes if no process has done so within the hour, and else looks for lost tasks if none has
// done that lately. It reports whether it did the latter.
func (s *Server) pruneInTurn(ctx context.Context) (bool, error) {
	work, key, every := (*Control).Prune, prunedKey+s.queues[0], pruneEvery
	mine, err := s.redis.SetNX(ctx, key, time.Now().Unix(), every).Result()
	if err == nil && !mine {
		work, key, every = (*Control).Recover, recoveredKey+s.queues[0], recoverEvery
		mine, err = s.redis.SetNX(ctx, key, time.Now().Unix(), every).Result()
	}
	if err != nil || !mine {
		return false, err
	}
	pruned, err := work(NewControl(s.redis), ctx, s.queues...)
	if pruned != (Pruned{}) {
		s.log.Warn("queues repaired", "returned", pruned.Returned, "expired", pruned.Expired, "orphans",
			pruned.Orphans, "unnamed", pruned.Unnamed)
	}
	if rest := time.Duration(s.redis.DBSize(ctx).Val()) * restAKey; rest > every && err == nil {
		err = s.redis.Expire(ctx, key, rest).Err()
	}
	return every == recoverEvery, err
}

// reap returns the tasks of one queue whose workers are dead, by reap.lua.
func reap(ctx context.Context, c redis.UniversalClient, queue string, now time.Time) (returned, removed int64,
	err error) {
	keys := []string{stateKey(queue, Active), leaseKey(queue), stateKey(queue, Waiting)}
	n, err := reapScript.Run(ctx, c, keys, reapArgs{
		Silent: now.Add(leaseLeft).Unix(), Tasks: taskPrefix(queue), Now: now.UnixNano(), Most: reapMost,
	})
	if err != nil {
		return 0, 0, fmt.Errorf("reap queue %s: %w", queue, err)
	}
	return n.Returned, n.Removed, nil
}
