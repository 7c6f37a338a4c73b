package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// archiveAge is how long archived tasks are kept. asynq's own limit is 90 days; if thousands of tasks reach
// it together, asynq fails.
const archiveAge = 80 * 24 * time.Hour

// searchable is the longest waiting list that Prune searches for a lost task.
const searchable = 1000

// Pruned is the result of Prune.
type Pruned struct {
	Expired  int // archived tasks too old or too many, removed
	Orphans  int // hashes of tasks that were in no queue any more, removed
	Returned int // tasks that should have run and were in no queue, put back
	Unnamed  int // ids in a queue without a task behind them, removed
}

// Prune cleans queues up. It removes archived tasks before so many expire together that asynq's archiving
// fails, and repairs tasks whose hash and place disagree. It works in steps of a few milliseconds; the
// total time is proportional to the number of tasks. Servers run it once an hour.
func (c *Control) Prune(ctx context.Context, queues ...string) (Pruned, error) {
	var sum Pruned
	for _, q := range queues {
		if err := c.pruneArchive(ctx, q, &sum); err != nil {
			return sum, fmt.Errorf("prune the archive of queue %s: %w", q, err)
		}
		if err := c.pruneHashes(ctx, q, &sum); err != nil {
			return sum, fmt.Errorf("prune the tasks of queue %s: %w", q, err)
		}
		for _, s := range []State{Scheduled, Retrying, Archived, Completed} {
			if err := c.pruneSet(ctx, q, s, &sum); err != nil {
				return sum, fmt.Errorf("prune the %s tasks of queue %s: %w", s, q, err)
			}
		}
	}
	return sum, nil
}

func (c *Control) pruneArchive(ctx context.Context, queue string, sum *Pruned) error {
	for {
		n, err := trimScript.Run(ctx, c.redis, stateKeys(queue, Archived), trimArgs{
			Tasks: taskPrefix(queue), Oldest: time.Now().Add(-archiveAge).Unix(), Keep: archiveMost, Most: chunk,
		})
		if err != nil {
			return err
		}
		sum.Expired += n
		if n < chunk {
			return nil
		}
	}
}

// pruneHashes visits the hashes of the queue's tasks and repairs those that are in no list.
func (c *Control) pruneHashes(ctx context.Context, queue string, sum *Pruned) error {
	node, err := masterOf(ctx, c.redis, queue)
	if err != nil {
		return err
	}
	prefix := taskPrefix(queue)
	return walk(func(cursor uint64) ([]string, uint64, error) {
		keys, next, err := node.Scan(ctx, cursor, globQuote(prefix)+"*", 2*chunk).Result()
		for i, key := range keys {
			keys[i] = strings.TrimPrefix(key, prefix)
		}
		return keys, next, err
	}, func(ids []string) error { return c.mend(ctx, queue, ids, sum) })
}

// pruneSet visits one of the queue's sorted sets and removes ids without a task.
func (c *Control) pruneSet(ctx context.Context, queue string, state State, sum *Pruned) error {
	return walk(func(cursor uint64) ([]string, uint64, error) {
		pairs, next, err := c.redis.ZScan(ctx, stateKey(queue, state), cursor, "", 2*chunk).Result()
		ids := pairs[:0]
		for i := 0; i+1 < len(pairs); i += 2 {
			ids = append(ids, pairs[i])
		}
		return ids, next, err
	}, func(ids []string) error { return c.mend(ctx, queue, ids, sum) })
}

// walk calls scan until its cursor is back at zero, and calls do with the results, a chunk at a time.
func walk(scan func(cursor uint64) ([]string, uint64, error), do func(ids []string) error) error {
	var cursor uint64
	for {
		ids, next, err := scan(cursor)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(ids, chunk) {
			if err := do(some); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// mend repairs the tasks in one call of mend.lua.
func (c *Control) mend(ctx context.Context, queue string, ids []string, sum *Pruned) error {
	keys := stateKeys(queue, Waiting, Active, Scheduled, Retrying, Archived, Completed)
	n, err := mendScript.Run(ctx, c.redis, keys, mendArgs{
		Tasks: taskPrefix(queue), Now: time.Now().UnixNano(), Searchable: searchable, IDs: ids,
	})
	sum.Orphans += n.Orphans
	sum.Returned += n.Returned
	sum.Unnamed += n.Unnamed
	return err
}

// globQuote escapes a text for a pattern of Redis.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
