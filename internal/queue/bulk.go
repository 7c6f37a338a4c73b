package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Before is called before tasks are moved, with at most five hundred ids. It returns one error for each id,
// or nil for none. A task with an error stays where it is.
type Before func(ctx context.Context, ids []string) []error

// DeleteAll removes all tasks that were in the given state when it began, in steps of a few milliseconds,
// and returns their number. A nil before permits all. Active tasks cannot be deleted.
func (c *Control) DeleteAll(ctx context.Context, queue string, from State, before Before) (int, error) {
	return c.moveAll(ctx, queue, from, toNowhere, before)
}

// RunAll makes all tasks that were scheduled, retrying or archived when it began wait for a worker, and
// returns their number.
func (c *Control) RunAll(ctx context.Context, queue string, from State, before Before) (int, error) {
	return c.moveAll(ctx, queue, from, toWaiting, before)
}

// ArchiveAll archives all tasks that were waiting, scheduled or retrying when it began, and returns their
// number. The archive keeps the newest 9,000; tasks beyond that are deleted.
func (c *Control) ArchiveAll(ctx context.Context, queue string, from State, before Before) (int, error) {
	return c.moveAll(ctx, queue, from, toArchived, before)
}

// moveAll goes through a state from its oldest end. It visits no more tasks than were there at first, so it
// doesn't reach newer tasks that return to the state while it runs.
func (c *Control) moveAll(ctx context.Context, queue string, from State, to target, before Before) (moved int,
	err error) {
	if from == Active || string(from) == string(to) {
		return 0, fmt.Errorf("%s tasks of queue %s to %s: %w", from, queue, to, ErrWrongState)
	}
	left, err := c.size(ctx, queue, from)
	if err != nil {
		return 0, err
	}
	stay := 0 // tasks skipped at the old end
	for left > 0 {
		ids, err := c.oldest(ctx, queue, from, stay, min(left, stretch))
		if err != nil || len(ids) == 0 {
			return moved, err
		}
		left -= len(ids)
		span := part{}
		if from == Waiting {
			span = part{span: len(ids), older: stay}
		}
		n, gone, err := c.moveChunk(ctx, queue, to, span, ids, before)
		moved += n
		if err != nil {
			return moved, err
		}
		stay += len(ids) - gone
	}
	return moved, nil
}

// moveChunk moves the tasks that before permits. It returns how many it moved, and how many are no longer
// in the state.
func (c *Control) moveChunk(ctx context.Context, queue string, to target, from part, ids []string,
	before Before) (moved, gone int, err error) {
	if before != nil {
		ids = agreed(ids, before(ctx, ids))
	}
	if len(ids) == 0 {
		return 0, 0, nil
	}
	for _, err := range c.moveFew(ctx, queue, to, from, ids) {
		switch {
		case err == nil:
			moved++
			gone++
		case errors.Is(err, ErrNoTask), errors.Is(err, ErrActive), errors.Is(err, ErrWrongState):
			gone++ // moved by another caller, perhaps by before
		default:
			return moved, gone, err
		}
	}
	return moved, gone, nil
}

// agreed returns the ids without an error.
func agreed(ids []string, errs []error) []string {
	kept := make([]string, 0, len(ids))
	for i, id := range ids {
		if i >= len(errs) || errs[i] == nil {
			kept = append(kept, id)
		}
	}
	return kept
}

// size returns the number of tasks in one state.
func (c *Control) size(ctx context.Context, queue string, s State) (int, error) {
	var answer *redis.IntCmd
	switch s {
	case Waiting, Active:
		answer = c.redis.LLen(ctx, stateKey(queue, s))
	case Scheduled, Retrying, Archived, Completed:
		answer = c.redis.ZCard(ctx, stateKey(queue, s))
	default:
		return 0, fmt.Errorf("queue %s: there is no state %q", queue, s)
	}
	n, err := answer.Result()
	if err != nil {
		return 0, fmt.Errorf("count the %s tasks of queue %s: %w", s, queue, err)
	}
	return int(n), nil
}

// oldest returns n ids of a state from its old end, after the first skip ids.
func (c *Control) oldest(ctx context.Context, queue string, s State, skip, n int) ([]string, error) {
	var answer *redis.StringSliceCmd
	if s == Waiting || s == Active {
		// Tasks enter these lists at the left.
		answer = c.redis.LRange(ctx, stateKey(queue, s), int64(-skip-n), int64(-skip-1))
	} else {
		answer = c.redis.ZRange(ctx, stateKey(queue, s), int64(skip), int64(skip+n-1))
	}
	ids, err := answer.Result()
	if err != nil {
		return nil, fmt.Errorf("list the %s tasks of queue %s: %w", s, queue, err)
	}
	return ids, nil
}
