package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// State is the state of a task in its queue, in asynq's terms.
type State string

// The states of a task. The empty State means that there is no such task.
const (
	Waiting   State = "pending"   // for a worker
	Active    State = "active"    // with a worker
	Scheduled State = "scheduled" // waits for its first time
	Retrying  State = "retry"     // waits to be tried again
	Archived  State = "archived"  // failed permanently
	Completed State = "completed" // done, and kept for a while
)

// Control inspects and controls queues: pauses, counts, and an operator's actions on tasks. It is safe for
// concurrent use.
type Control struct {
	redis redis.UniversalClient
	pace  pace
}

// NewControl returns a Control that uses the given connection and never closes it.
func NewControl(c redis.UniversalClient) *Control {
	return &Control{redis: c}
}

// Register adds the queues to the dashboard before they have their first task. Servers do this every
// second.
func (c *Control) Register(ctx context.Context, queues ...string) error {
	if len(queues) == 0 {
		return nil
	}
	return register(ctx, c.redis, queues)
}

// Pause stops workers from taking tasks off the queues. Workers finish their tasks; due tasks wait. Pausing a
// paused queue changes nothing. asynq's key of the pause is the only record, so asynq's own tools and this
// package see each other's pauses.
func (c *Control) Pause(ctx context.Context, now time.Time, queues ...string) error {
	// The value is what asynq writes; asynq only checks whether the key exists.
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, q := range queues {
			p.SetNX(ctx, pausedKey(q), now.Unix(), 0)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("pause queues %v: %w", queues, err)
	}
	return nil
}

// Resume ends pauses. Resuming a queue that is not paused changes nothing.
func (c *Control) Resume(ctx context.Context, queues ...string) error {
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, q := range queues {
			p.Del(ctx, pausedKey(q))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("resume queues %v: %w", queues, err)
	}
	for _, q := range queues {
		announce(ctx, c.redis, q)
	}
	return nil
}

func (c *Control) setPaused(ctx context.Context, queue string, paused bool) error {
	if paused {
		return c.Pause(ctx, time.Now(), queue)
	}
	return c.Resume(ctx, queue)
}

// Paused returns the queues that are paused, each with the time when its pause began, in whole seconds. The
// time is zero if asynq's key has none.
func (c *Control) Paused(ctx context.Context, queues ...string) (map[string]time.Time, error) {
	found := make([]*redis.StringCmd, len(queues))
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, q := range queues {
			found[i] = p.Get(ctx, pausedKey(q))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil means that a queue is not paused
		return nil, fmt.Errorf("ask which of the queues %v are paused: %w", queues, err)
	}
	paused := make(map[string]time.Time, len(queues))
	for i, q := range queues {
		if errors.Is(found[i].Err(), redis.Nil) {
			continue
		}
		if err := found[i].Err(); err != nil {
			return nil, fmt.Errorf("ask whether queue %s is paused: %w", q, err)
		}
		paused[q] = time.Time{}
		if since, err := found[i].Int64(); err == nil {
			paused[q] = time.Unix(since, 0)
		}
	}
	return paused, nil
}

// IDs returns the ids of all tasks that are Archived, Completed, Scheduled or Retrying, the oldest or soonest
// first.
func (c *Control) IDs(ctx context.Context, queue string, s State) ([]string, error) {
	ids, err := c.redis.ZRange(ctx, stateKey(queue, s), 0, -1).Result()
	if err != nil {
		err = fmt.Errorf("list the %s tasks of queue %s: %w", s, queue, err)
	}
	return ids, err
}
