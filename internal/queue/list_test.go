package queue

// The tests look at single tasks with asynq's own functions.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// Info is a task as stored in its queue.
type Info struct {
	Task                   // At is when it is due, zero when it is not waiting for a time
	State        State     // where it is
	Failures     int       // verdicts of failure so far
	LastError    string    // text of the last failure
	LastFailedAt time.Time // when; zero means never
}

// pageMost is the maximum page size of List.
const pageMost = 1000

// List returns one page of the tasks in a state, the oldest or soonest first. Pages count from 1 and hold
// size tasks, at most 1,000. A queue that does not exist yet has none.
func (c *Control) List(ctx context.Context, queue string, s State, page, size int) ([]Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list := c.lister(s)
	if list == nil {
		return nil, fmt.Errorf("list queue %s: there is no state %q", queue, s)
	}
	tasks, err := list(queue, asynq.Page(max(1, page)), asynq.PageSize(min(max(1, size), pageMost)))
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the %s tasks of queue %s: %w", s, queue, err)
	}
	infos := make([]Info, 0, len(tasks))
	for _, t := range tasks {
		if t.ID != "" { // an id without a task; Prune removes it
			infos = append(infos, readInfo(t, s))
		}
	}
	return infos, nil
}

// lister returns asynq's function that lists a state.
func (c *Control) lister(s State) func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error) {
	inspector := asynq.NewInspectorFromRedisClient(c.redis)
	switch s {
	case Waiting:
		return inspector.ListPendingTasks
	case Active:
		return inspector.ListActiveTasks
	case Scheduled:
		return inspector.ListScheduledTasks
	case Retrying:
		return inspector.ListRetryTasks
	case Archived:
		return inspector.ListArchivedTasks
	case Completed:
		return inspector.ListCompletedTasks
	}
	return nil
}

func readInfo(t *asynq.TaskInfo, s State) Info {
	info := Info{
		Task:     Task{Queue: t.Queue, Type: t.Type, ID: t.ID, Payload: t.Payload},
		State:    s,
		Failures: t.Retried, LastError: t.LastErr, LastFailedAt: t.LastFailedAt,
	}
	if s == Scheduled || s == Retrying {
		info.At = t.NextProcessAt
	}
	return info
}
