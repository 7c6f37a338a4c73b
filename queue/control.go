package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// State is the state of a task in its queue, in asynq's words.
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

// Control watches and steers queues: pausing, counting, and what an operator does to tasks. It is safe for concurrent use.
type Control struct {
	redis     redis.UniversalClient
	inspector *asynq.Inspector

	mu     sync.Mutex
	paused map[string]pauseSeen // what PausedRecently knows
}

// pauseSeen is what was seen of a queue's pause, and when.
type pauseSeen struct {
	paused bool
	at     time.Time
}

// NewControl makes a Control that uses the given connection and never closes it.
func NewControl(c redis.UniversalClient) *Control {
	return &Control{redis: c, inspector: asynq.NewInspectorFromRedisClient(c), paused: map[string]pauseSeen{}}
}

// Register makes the queues known to the dashboard before they have seen their first task. Servers do it by themselves, every second.
func (c *Control) Register(ctx context.Context, queues ...string) error {
	if len(queues) == 0 {
		return nil
	}
	return register(ctx, c.redis, queues)
}

// Pause keeps workers from taking tasks off the queue. Tasks that are with a worker are finished, tasks whose time comes wait. Pausing a
// paused queue changes nothing.
func (c *Control) Pause(ctx context.Context, queue string) error {
	// The value is what asynq writes; it asks only whether the key is there.
	if err := c.redis.SetNX(ctx, pausedKey(queue), time.Now().Unix(), 0).Err(); err != nil {
		return fmt.Errorf("pause queue %s: %w", queue, err)
	}
	c.sawPaused(queue, true)
	return nil
}

// Resume ends a pause. Resuming a queue that is not paused changes nothing.
func (c *Control) Resume(ctx context.Context, queue string) error {
	if err := c.redis.Del(ctx, pausedKey(queue)).Err(); err != nil {
		return fmt.Errorf("resume queue %s: %w", queue, err)
	}
	c.sawPaused(queue, false)
	return nil
}

// Paused says whether the queue is paused.
func (c *Control) Paused(ctx context.Context, queue string) (bool, error) {
	n, err := c.redis.Exists(ctx, pausedKey(queue)).Result()
	if err != nil {
		return false, fmt.Errorf("ask whether queue %s is paused: %w", queue, err)
	}
	c.sawPaused(queue, n == 1)
	return n == 1, nil
}

// PausedRecently says whether the queue was paused a second ago or less, for callers that ask for every message of a list. While Redis
// is away it repeats the last answer it had.
func (c *Control) PausedRecently(ctx context.Context, queue string) (bool, error) {
	c.mu.Lock()
	seen, known := c.paused[queue]
	c.mu.Unlock()
	if known && time.Since(seen.at) < time.Second {
		return seen.paused, nil
	}
	paused, err := c.Paused(ctx, queue)
	if err != nil && known {
		return seen.paused, nil
	}
	return paused, err
}

func (c *Control) sawPaused(queue string, paused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused[queue] = pauseSeen{paused: paused, at: time.Now()}
}
