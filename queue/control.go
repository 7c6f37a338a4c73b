package queue

import (
	"context"
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
	Archived  State = "archived"  // failed for good
	Completed State = "completed" // done, and kept for a while
)

// Control inspects and controls queues: pauses, counts, and an operator's actions on tasks. It is safe for
// concurrent use.
type Control struct {
	redis redis.UniversalClient
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

// Pause stops workers from taking tasks off the queue. Tasks already with a worker are finished; due tasks
// wait. Pausing a paused queue changes nothing.
func (c *Control) Pause(ctx context.Context, queue string) error {
	// The value is what asynq writes; asynq only checks whether the key exists.
	if err := c.redis.SetNX(ctx, pausedKey(queue), time.Now().Unix(), 0).Err(); err != nil {
		return fmt.Errorf("pause queue %s: %w", queue, err)
	}
	return nil
}

// Resume ends a pause. Resuming a queue that is not paused changes nothing.
func (c *Control) Resume(ctx context.Context, queue string) error {
	if err := c.redis.Del(ctx, pausedKey(queue)).Err(); err != nil {
		return fmt.Errorf("resume queue %s: %w", queue, err)
	}
	announce(ctx, c.redis, queue)
	return nil
}

// Paused reports whether the queue is paused.
func (c *Control) Paused(ctx context.Context, queue string) (bool, error) {
	n, err := c.redis.Exists(ctx, pausedKey(queue)).Result()
	if err != nil {
		return false, fmt.Errorf("ask whether queue %s is paused: %w", queue, err)
	}
	return n == 1, nil
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
