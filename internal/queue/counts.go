package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// Counts is a summary of a queue.
type Counts struct {
	Queue     string
	Waiting   int // for a worker, or for the end of a pause
	Active    int // with a worker
	Scheduled int // waiting for their first time
	Retrying  int // waiting to be tried again
	Archived  int // failed permanently; at most 9,999 are kept
	Completed int // done, and kept for a while
	Paused    bool
	PausedAt  time.Time // when the pause began; zero when it is not paused, or when that is not known
	// Latency is how long the oldest runnable task has been waiting for a worker, or since it was due, if no
	// server runs to move it to waiting. Zero if there is none or it is unknown.
	Latency time.Duration
	// ProcessedTotal counts the tasks done, dropped, buried or retried in the life of the queue.
	// FailedTotal counts those buried or retried. NotNow counts in neither.
	ProcessedTotal, FailedTotal int
	// PerMinute is how many tasks were done, dropped, buried or retried per minute lately, by all processes. It
	// is nil until this process has counted for long enough.
	PerMinute *float64
}

// Counts returns the counts of the queues, in one round trip and in the given order. A queue that does not
// exist yet has zero counts.
func (c *Control) Counts(ctx context.Context, queues ...string) ([]Counts, error) {
	answers := make([]*redisdb.Reply[counted], len(queues))
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, q := range queues {
			keys := append(stateKeys(q, Waiting, Active, Scheduled, Retrying, Archived, Completed),
				queueKey(q, "processed"), queueKey(q, "failed"), pausedKey(q))
			answers[i] = countsScript.AddTo(ctx, p, keys, tasksArgs{taskPrefix(q)})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count queues %v: %w", queues, err)
	}
	now := time.Now()
	all := make([]Counts, len(queues))
	for i, q := range queues {
		n, err := answers[i].Read()
		if err != nil {
			return nil, fmt.Errorf("count queue %s: %w", q, err)
		}
		all[i] = n.counts(q, now)
		all[i].PerMinute = c.pace.note(q, n.ProcessedTotal, now)
	}
	return all, nil
}

func (n counted) counts(queue string, now time.Time) Counts {
	c := Counts{
		Queue: queue, Waiting: n.Waiting, Active: n.Active, Scheduled: n.Scheduled, Retrying: n.Retrying,
		Archived: n.Archived, Completed: n.Completed, ProcessedTotal: n.ProcessedTotal,
		FailedTotal: n.FailedTotal, Paused: n.Paused,
	}
	if n.Since != 0 {
		c.Latency = max(0, now.Sub(time.Unix(0, n.Since)))
	}
	if n.Due != 0 {
		c.Latency = max(c.Latency, now.Sub(time.Unix(n.Due, 0)))
	}
	if n.PausedAt != 0 {
		c.PausedAt = time.Unix(n.PausedAt, 0)
	}
	return c
}

// Memory estimates the bytes that the queue and its tasks use in Redis.
func (c *Control) Memory(ctx context.Context, queue string) (int64, error) {
	keys := stateKeys(queue, Active, Waiting, Scheduled, Retrying, Archived, Completed)
	n, err := memoryScript.Run(ctx, c.redis, keys, tasksArgs{taskPrefix(queue)})
	if err != nil {
		return 0, fmt.Errorf("measure queue %s: %w", queue, err)
	}
	return n, nil
}
