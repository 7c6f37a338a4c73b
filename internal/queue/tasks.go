package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// The errors of Delete, RunNow and Archive for a task that they could not move.
var (
	ErrNoTask     = errors.New("there is no such task")
	ErrActive     = errors.New("the task is with a worker")
	ErrWrongState = errors.New("the state of the task does not allow this")
)

// Limits that keep every script within a few milliseconds.
const (
	chunk = 100 // tasks in one call
	// stretch is how many adjacent tasks go in one call: they are found together.
	stretch = 500
	// reach is how many entries of the waiting list one call may visit to find its tasks; about two
	// milliseconds.
	reach = 100_000
	// archiveMost is the size limit of the archive; asynq's own limit is 9,999, which its scripts cannot
	// always enforce.
	archiveMost = 9_000
)

// target is where move.lua takes tasks.
type target string

const (
	toWaiting  target = "pending"
	toArchived target = "archived"
	toNowhere  target = "nowhere"
)

// States returns the states of tasks, in order; the empty State for missing ones.
func (c *Control) States(ctx context.Context, queue string, ids ...string) ([]State, error) {
	states := make([]State, 0, len(ids))
	for ids := range slices.Chunk(ids, 1000) {
		answers := make([]*redis.StringCmd, len(ids))
		_, err := c.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range ids {
				answers[i] = p.HGet(ctx, taskKey(queue, id), "state")
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read the states of %d tasks of queue %s: %w", len(ids), queue, err)
		}
		for i, answer := range answers {
			state, err := answer.Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return nil, fmt.Errorf("read the state of task %s of queue %s: %w", ids[i], queue, err)
			}
			states = append(states, State(state))
		}
	}
	return states, nil
}

// Payload returns the payload of a task. The error is ErrNoTask if there is none.
func (c *Control) Payload(ctx context.Context, queue, id string) ([]byte, error) {
	if err := ctx.Err(); err != nil { // asynq takes no context here
		return nil, err
	}
	info, err := asynq.NewInspectorFromRedisClient(c.redis).GetTaskInfo(queue, id)
	switch {
	case errors.Is(err, asynq.ErrTaskNotFound), errors.Is(err, asynq.ErrQueueNotFound):
		return nil, ErrNoTask
	case err != nil:
		return nil, fmt.Errorf("read task %s of queue %s: %w", id, queue, err)
	}
	return info.Payload, nil
}

// Delete removes tasks in any state but active. It returns one error for each id: ErrNoTask, or ErrActive
// for a task with a worker.
func (c *Control) Delete(ctx context.Context, queue string, ids ...string) []error {
	return c.move(ctx, queue, toNowhere, ids)
}

// RunNow makes scheduled, retrying or archived tasks wait for a worker now. It returns one error for each
// id: ErrNoTask, ErrActive, or ErrWrongState for a task that waits for a worker already or is completed.
func (c *Control) RunNow(ctx context.Context, queue string, ids ...string) []error {
	return c.move(ctx, queue, toWaiting, ids)
}

// Archive moves tasks to the archive. They stay there until they are run, deleted, or displaced by 9,000
// newer tasks. It returns one error for each id.
func (c *Control) Archive(ctx context.Context, queue string, ids ...string) []error {
	return c.move(ctx, queue, toArchived, ids)
}

// Cancel ends the contexts of tasks' handlers, in any process. The tasks come back a few seconds later; only
// the handler's record can end them permanently.
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

// move moves tasks by id. Finding one in a long waiting list means scanning it, so the longer the list the
// fewer tasks go in one call.
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
	for some := range slices.Chunk(ids, step) {
		errs = append(errs, c.moveFew(ctx, queue, to, part{}, some)...)
	}
	return errs
}

// part is a part of a waiting list: span entries, with older entries before them. The zero part is unknown.
type part struct{ span, older int }

// moveFew moves the tasks in one call of move.lua, which finds waiting ones faster if it knows their part
// of the list.
func (c *Control) moveFew(ctx context.Context, queue string, to target, from part, ids []string) []error {
	now := time.Now()
	results, err := moveScript.Run(ctx, c.redis, stateKeys(queue, Waiting, Scheduled, Retrying, Archived,
		Completed),
		moveArgs{
			Tasks: taskPrefix(queue), Target: to, Now: now.Unix(), NowNanos: now.UnixNano(), Keep: archiveMost,
			Span: from.span, Older: from.older, IDs: ids,
		})
	if err == nil && len(results) != len(ids) {
		err = fmt.Errorf("%d answers for %d tasks", len(results), len(ids))
	}
	if err != nil {
		return all(len(ids), fmt.Errorf("move tasks of queue %s to %s: %w", queue, to, err))
	}
	if to == toWaiting {
		announce(ctx, c.redis, queue)
	}
	errs := make([]error, len(ids))
	for i, result := range results {
		errs[i] = moveError(result)
	}
	return errs
}

// moveError parses one result of move.lua.
func moveError(result int) error {
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

// all returns n times the same error.
func all(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
