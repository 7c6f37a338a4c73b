package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	retentionEvery = 30 * time.Second
	retentionCheck = time.Second // how often run checks whether retentionEvery has passed
	retentionBatch = 1000        // messages in one round trip
	// batches of one kind and partition in one check; the rest waits for the next check
	retentionRounds = 30
)

// retention deletes dead letters, log entries and read events that are too old or too many. Every process
// runs one; two together do no harm.
type retention struct {
	d    *Operations
	last time.Time // when it last had nothing left to do
}

// check applies retention if retentionEvery has passed.
func (r *retention) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := r.d.clock.ready(ctx, r.d.DB.Client()); err != nil {
		return err
	}
	now := r.d.clock.Now()
	if now.Sub(r.last) <= retentionEvery {
		return nil
	}
	done, err := r.tidy(ctx, now)
	if err == nil && done {
		r.last = now
	}
	return err
}

// tidy applies retention. done is false if something is left for the next check.
func (r *retention) tidy(ctx context.Context, now time.Time) (done bool, _ error) {
	done = true
	for p := range r.d.DB.Partitions() {
		for _, step := range []func(context.Context, int, time.Time) (int, error){r.expireLetters, r.expireLog} {
			for round := 0; ; round++ {
				if round == retentionRounds {
					done = false
					break
				}
				n, err := step(ctx, p, now)
				if err != nil {
					return false, err
				}
				if n < retentionBatch {
					break
				}
			}
		}
		trimmed, err := r.trim(ctx, p)
		if err != nil {
			return false, err
		}
		done = done && trimmed
	}
	return done, nil
}

// expireLetters deletes dead letters that are too old or too many. It returns how many it read.
func (r *retention) expireLetters(ctx context.Context, p int, now time.Time) (int, error) {
	rdb, key := r.d.DB.Client(), redisdb.Key(p, "dead")
	before := now.Add(-max(r.d.opts.KeepDeadLetters, 0))
	ids, err := rdb.ZRangeArgs(ctx, redis.ZRangeArgs{Key: key, ByScore: true, Start: "-inf",
		Stop: redisdb.Millis(before), Count: retentionBatch}).Result()
	if err != nil {
		return 0, fmt.Errorf("read old dead letters: %w", err)
	}
	if len(ids) == 0 {
		n, err := rdb.ZCard(ctx, key).Result()
		surplus := int(n) - r.share(r.d.opts.MaxDeadLetters)
		if err != nil || surplus <= 0 {
			return 0, err
		}
		if ids, err = rdb.ZRange(ctx, key, 0, int64(min(surplus, retentionBatch))-1).Result(); err != nil {
			return 0, fmt.Errorf("read surplus dead letters: %w", err)
		}
	}
	_, left, err := r.d.cancelEach(ctx, entriesOf(ids), reasonRetention,
		func(r row) bool { return r.state == stateFailed })
	r.d.forget(ctx, left...)
	return len(ids), err
}

// expireLog deletes log entries that are too old or too many. It returns how many.
func (r *retention) expireLog(ctx context.Context, p int, now time.Time) (int, error) {
	before := now.Add(-max(r.d.opts.KeepEnded, 0))
	return purgeScript.Run(ctx, r.d.DB.Client(), []string{r.d.keys.events(p)},
		purgeArgs{Before: before, Keep: r.share(r.d.opts.MaxEnded), Most: retentionBatch})
}

// trim shortens the event stream to Options.MaxEvents, but keeps every event that a reader has not read yet.
// It returns done false if it must continue at the next check: Redis drops 10,000 events at a time, and a
// busy outbox can write more between two checks.
func (r *retention) trim(ctx context.Context, p int) (done bool, _ error) {
	rdb, key := r.d.DB.Client(), r.d.keys.events(p)
	n, err := rdb.XLen(ctx, key).Result()
	if err != nil || int(n) <= r.d.opts.MaxEvents {
		return true, err
	}
	groups, err := rdb.XInfoGroups(ctx, key).Result()
	if err != nil {
		return false, fmt.Errorf("read groups of %s: %w", key, err)
	}
	keep := int64(r.d.opts.MaxEvents)
	for _, g := range groups {
		keep = max(keep, g.Lag+g.Pending)
	}
	for range retentionRounds {
		gone, err := rdb.XTrimMaxLenApprox(ctx, key, keep, 0).Result()
		if err != nil || gone == 0 {
			return true, err
		}
	}
	return false, nil
}

// share returns a partition's part of a number for the whole outbox. Messages are spread evenly.
func (r *retention) share(whole int) int {
	return (whole + r.d.DB.Partitions() - 1) / r.d.DB.Partitions()
}

// searchFrom is the number of orphaned tasks of a queue from which on the whole queue is searched for them.
const searchFrom = 50

// errNeeded keeps a task in the queue: its message is still there.
var errNeeded = errors.New("the message is still there")

// orphans are the task ids of cancelled messages, by queue; at most searchFrom per queue. Redis searches a
// waiting list to remove a task, so many tasks are removed in one search. Removing half a million tasks one
// by one took hours.
type orphans map[string][]string

func (o orphans) add(tasks []task) {
	for _, t := range tasks {
		if len(o[t.queue]) < searchFrom {
			o[t.queue] = append(o[t.queue], t.id)
		}
	}
}

// deleteOrphans removes orphaned tasks. If that fails, a task finds its message gone.
func (d *Operations) deleteOrphans(ctx context.Context, left orphans) {
	for name, ids := range left {
		if len(ids) < searchFrom {
			d.deleteTasks(ctx, name, ids)
			continue
		}
		for _, state := range []queue.State{queue.Scheduled, queue.Retrying, queue.Waiting} {
			if _, err := d.Control.DeleteAll(ctx, name, state, d.needed); err != nil {
				d.log.DebugContext(ctx, "tasks left behind", "queue", name, "error", err)
			}
		}
	}
}

// needed returns errNeeded for each task whose message still exists.
func (d *Operations) needed(ctx context.Context, tasks []string) []error {
	pipe := d.DB.Client().Pipeline()
	for _, t := range tasks {
		id := messageOf(t)
		pipe.Exists(ctx, d.keys.message(d.partition(id), id))
	}
	cmds, err := pipe.Exec(ctx)
	errs := make([]error, len(tasks))
	for i := range tasks {
		switch {
		case err != nil:
			errs[i] = err
		case cmds[i].(*redis.IntCmd).Val() == 1:
			errs[i] = errNeeded
		}
	}
	return errs
}
