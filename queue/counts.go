package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Counts is a summary of a queue.
type Counts struct {
	Queue     string
	Waiting   int // for a worker, or for the end of a pause
	Active    int // with a worker
	Scheduled int // waiting for their first time
	Retrying  int // waiting to be tried again
	Archived  int // failed for good; at most 9,999 are kept
	Completed int // done, and kept for a while
	Paused    bool
	PausedAt  time.Time // when the pause began; zero when it is not paused, or when that is not known
	// Latency is how long the oldest runnable task has been waiting: for a worker, or, if no server runs to
	// move it to waiting, since it was due. Zero if there is none or it is unknown.
	Latency time.Duration
	// ProcessedTotal counts the tasks done, dropped, buried or retried in the life of the queue.
	// FailedTotal counts those buried or retried. NotNow counts in neither.
	ProcessedTotal, FailedTotal int
}

// Delayed returns the number of tasks that wait for their time.
func (c Counts) Delayed() int { return c.Scheduled + c.Retrying }

// Counts returns the counts of the queues, in one round trip and in the given order. A queue that does not
// exist yet has zero counts.
func (c *Control) Counts(ctx context.Context, queues ...string) ([]Counts, error) {
	answers := make([]*redis.Cmd, len(queues))
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, q := range queues {
			answers[i] = p.Eval(ctx, countsSource, countsKeys(q), taskPrefix(q))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count queues %v: %w", queues, err)
	}
	now := time.Now()
	all := make([]Counts, len(queues))
	for i, q := range queues {
		if all[i], err = readCounts(q, answers[i], now); err != nil {
			return nil, fmt.Errorf("count queue %s: %w", q, err)
		}
	}
	return all, nil
}

func countsKeys(queue string) []string {
	return []string{
		stateKey(queue, Waiting), stateKey(queue, Active), stateKey(queue, Scheduled), stateKey(queue, Retrying),
		stateKey(queue, Archived), stateKey(queue, Completed),
		queueKey(queue, "processed"), queueKey(queue, "failed"), pausedKey(queue),
	}
}

// readCounts parses the reply of counts.lua.
func readCounts(queue string, answer *redis.Cmd, now time.Time) (Counts, error) {
	values, err := answer.Slice()
	if err != nil {
		return Counts{}, err
	}
	if len(values) != 12 {
		return Counts{}, fmt.Errorf("%d values instead of 12", len(values))
	}
	var n [9]int
	for i := range n {
		v, ok := values[i].(int64)
		if !ok {
			return Counts{}, fmt.Errorf("value %d is a %T", i, values[i])
		}
		n[i] = int(v)
	}
	counts := Counts{
		Queue: queue, Waiting: n[0], Active: n[1], Scheduled: n[2], Retrying: n[3], Archived: n[4], Completed: n[5],
		ProcessedTotal: n[6], FailedTotal: n[7], Paused: n[8] == 1,
	}
	if since := whole(values[9]); since != 0 {
		counts.Latency = max(0, now.Sub(time.Unix(0, since)))
	}
	if due := whole(values[10]); due != 0 {
		counts.Latency = max(counts.Latency, now.Sub(time.Unix(due, 0)))
	}
	if at := whole(values[11]); at != 0 {
		counts.PausedAt = time.Unix(at, 0)
	}
	return counts, nil
}

// whole parses a number that a script returned as a string; zero for none.
func whole(value any) int64 {
	text, _ := value.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Memory estimates the bytes that the queue and its tasks use in Redis.
func (c *Control) Memory(ctx context.Context, queue string) (int64, error) {
	keys := []string{
		stateKey(queue, Active), stateKey(queue, Waiting), stateKey(queue, Scheduled), stateKey(queue, Retrying),
		stateKey(queue, Archived), stateKey(queue, Completed),
	}
	n, err := memoryScript.Run(ctx, c.redis, keys, taskPrefix(queue)).Int64()
	if err != nil {
		return 0, fmt.Errorf("measure queue %s: %w", queue, err)
	}
	return n, nil
}
