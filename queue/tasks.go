package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// What Delete, RunNow and Archive say of a task they could not move.
var (
	ErrNoTask     = errors.New("there is no such task")
	ErrActive     = errors.New("the task is with a worker")
	ErrWrongState = errors.New("the state of the task does not allow this")
)

// Limits that keep every script within a few milliseconds.
const (
	chunk = 100 // tasks in one call
	// stretch is how many tasks that lie together go in one call: they are found together.
	stretch = 500
	// reach is how many entries of the waiting list one call may walk over to find its tasks; about two milliseconds.
	reach = 100_000
	// archiveMost is where the archive ends; asynq's own end is at 9,999, which its scripts cannot always enforce.
	archiveMost = 9_000
)

// target is where move.lua takes tasks.
type target string

const (
	toWaiting  target = "pending"
	toArchived target = "archived"
	toNowhere  target = "nowhere"
)

// States gives the states of tasks, in order; the empty State for those that are not there.
func (c *Control) States(ctx context.Context, queue string, ids ...string) ([]State, error) {
	states := make([]State, 0, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), 1000)
		answers := make([]*redis.StringCmd, n)
		_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range ids[:n] {
				answers[i] = p.HGet(ctx, taskKey(queue, id), "state")
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read the states of %d tasks of queue %s: %w", n, queue, err)
		}
		for i, answer := range answers {
			state, err := answer.Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return nil, fmt.Errorf("read the state of task %s of queue %s: %w", ids[i], queue, err)
			}
			states = append(states, State(state))
		}
		ids = ids[n:]
	}
	return states, nil
}

// Delete removes tasks, whatever they wait for. Errors come one for each id: ErrNoTask, or ErrActive for a task that is with a worker.
func (c *Control) Delete(ctx context.Context, queue string, ids ...string) []error {
	return c.move(ctx, queue, toNowhere, ids)
}

// RunNow makes tasks wait for a worker instead of for their time, archived ones too. Errors come one for each id: ErrNoTask, ErrActive, or ErrWrongState for a
// task that waits for a worker already or is completed.
func (c *Control) RunNow(ctx context.Context, queue string, ids ...string) []error {
	return c.move(ctx, queue, toWaiting, ids)
}

// Archive puts tasks aside among the failed ones, where they stay until they are run, deleted, or pushed out by 9,000 newer ones. Errors come one for each id.
func (c *Control) Archive(ctx context.Context, queue string, ids ...string) []error {
	return c.move(ctx, queue, toArchived, ids)
}

// Cancel ends the contexts of the handlers of tasks, in whatever process they run. The tasks come back a few seconds later; it
// takes the handler's record to end them for good.
func (c *Control) Cancel(ctx context.Context, ids ...string) error {
	_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range ids {
			p.Publish(ctx, cancelTopic, id)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cancel %d tasks: %w", len(ids), err)
	}
	return nil
}

// move moves named tasks. Finding one in a long waiting list means walking along it, so the longer the list the fewer tasks go in one call.
func (c *Control) move(ctx context.Context, queue string, to target, ids []string) []error {
	if len(ids) <= 1 {
		return c.moveFew(ctx, queue, to, part{}, ids)
	}
	waiting, err := c.redis.LLen(ctx, stateKey(queue, Waiting)).Result()
	if err != nil {
		return all(len(ids), fmt.Errorf("measure queue %s: %w", queue, err))
	}
	step := max(1, min(chunk, reach/max(1, int(waiting))))
	errs := make([]error, 0, len(ids))
	for len(ids) > 0 {
		n := min(step, len(ids))
		errs = append(errs, c.moveFew(ctx, queue, to, part{}, ids[:n])...)
		ids = ids[n:]
	}
	return errs
}

// part is a part of a waiting list: so many entries, with so many older ones before them. The zero part is not known.
type part struct{ span, older int }

// moveFew moves the tasks in one call of move.lua, which finds the waiting ones faster when it knows in which part of the list they were.
func (c *Control) moveFew(ctx context.Context, queue string, to target, from part, ids []string) []error {
	keys := []string{
		stateKey(queue, Waiting), stateKey(queue, Scheduled), stateKey(queue, Retrying), stateKey(queue, Archived), stateKey(queue, Completed),
	}
	now := time.Now()
	args := make([]any, 0, 7+len(ids))
	args = append(args, taskPrefix(queue), string(to), now.Unix(), now.UnixNano(), archiveMost, from.span, from.older)
	for _, id := range ids {
		args = append(args, id)
	}
	results, err := moveScript.Run(ctx, c.redis, keys, args...).Int64Slice()
	if err == nil && len(results) != len(ids) {
		err = fmt.Errorf("%d answers for %d tasks", len(results), len(ids))
	}
	if err != nil {
		return all(len(ids), fmt.Errorf("move tasks of queue %s to %s: %w", queue, to, err))
	}
	errs := make([]error, len(ids))
	for i, result := range results {
		errs[i] = moveError(result)
	}
	return errs
}

// moveError reads one answer of move.lua.
func moveError(result int64) error {
	switch result {
	case 1:
		return nil
	case 0:
		return ErrNoTask
	case -1:
		return ErrActive
	}
	return ErrWrongState
}

// all gives n times the same error.
func all(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
