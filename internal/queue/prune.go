package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// archiveAge is how long archived tasks are kept. asynq's own limit is 90 days; if thousands of tasks reach
// it together, asynq fails.
const archiveAge = 80 * 24 * time.Hour

// searchable is the longest waiting list that is searched. A longer list is assumed to have all its tasks.
const searchable = 200_000

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
		for _, s := range []State{Scheduled, Retrying, Archived, Completed} {
			if err := c.pruneSet(ctx, q, s, &sum); err != nil {
				return sum, fmt.Errorf("prune the %s tasks of queue %s: %w", s, q, err)
			}
		}
	}
	found, err := c.Recover(ctx, queues...)
	sum.Orphans, sum.Returned, sum.Unnamed = sum.Orphans+found.Orphans, sum.Returned+found.Returned,
		sum.Unnamed+found.Unnamed
	return sum, err
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

// Recover visits the hashes of all tasks and repairs tasks of the queues that are in no list: an operator, or
// a failure of Redis, lost the list.
func (c *Control) Recover(ctx context.Context, queues ...string) (sum Pruned, err error) {
	waiting := map[string]map[string]bool{}
	nodes := map[redis.Cmdable]bool{}
	for _, q := range queues {
		node, err := masterOf(ctx, c.redis, q)
		if err == nil {
			waiting[q], err = c.waiting(ctx, q)
		}
		if err != nil {
			return sum, fmt.Errorf("read the tasks of queue %s: %w", q, err)
		}
		nodes[node] = true
	}
	for node := range nodes {
		err = walk(func(cursor uint64) ([]string, uint64, error) {
			return node.Scan(ctx, cursor, taskPrefix("*")+"*", 10*chunk).Result()
		}, func(keys []string) error {
			ids := map[string][]string{}
			for _, key := range keys {
				if q, id, ok := strings.Cut(strings.TrimPrefix(key, "asynq:{"), "}:t:"); ok && waiting[q] != nil {
					ids[q] = append(ids[q], id)
				}
			}
			for q, some := range ids {
				if err := c.mendSome(ctx, q, some, waiting[q], &sum); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return sum, fmt.Errorf("look for lost tasks: %w", err)
		}
	}
	return sum, nil
}

// waiting returns the ids of the waiting list, as far as it is searchable.
func (c *Control) waiting(ctx context.Context, queue string) (map[string]bool, error) {
	ids := map[string]bool{}
	for len(ids) < searchable {
		// from the end at which workers take tasks: none moves into the part that is still to be read
		at := int64(len(ids))
		some, err := c.redis.LRange(ctx, stateKey(queue, Waiting), -at-10*chunk, -at-1).Result()
		for _, id := range some {
			ids[id] = true
		}
		if err != nil || len(some) == 0 || int64(len(ids)) == at {
			return ids, err
		}
	}
	return ids, nil
}

// mendSome repairs tasks. It doesn't search again for tasks that were seen in the waiting list: that takes
// the longer the longer the list is.
func (c *Control) mendSome(ctx context.Context, queue string, ids []string, seen map[string]bool,
	sum *Pruned) error {
	listed, others := []string{}, []string{}
	for _, id := range ids {
		if seen[id] {
			listed = append(listed, id)
		} else {
			others = append(others, id)
		}
	}
	err := c.mend(ctx, queue, listed, 0, sum)
	for some := range slices.Chunk(others, max(1, min(chunk, reach/max(1, len(seen))))) {
		err = cmp.Or(err, c.mend(ctx, queue, some, searchable, sum))
	}
	return err
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
	}, func(ids []string) error { return c.mend(ctx, queue, ids, 0, sum) })
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
func (c *Control) mend(ctx context.Context, queue string, ids []string, search int, sum *Pruned) error {
	if len(ids) == 0 {
		return nil
	}
	keys := stateKeys(queue, Waiting, Active, Scheduled, Retrying, Archived, Completed)
	n, err := mendScript.Run(ctx, c.redis, keys, mendArgs{
		Tasks: taskPrefix(queue), Now: time.Now().UnixNano(), Searchable: search, IDs: ids,
	})
	sum.Orphans += n.Orphans
	sum.Returned += n.Returned
	sum.Unnamed += n.Unnamed
	return err
}
