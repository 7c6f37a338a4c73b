package outbox

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/queue"
)

// searchFrom is the number of orphaned tasks of a queue from which on the whole queue is searched for them.
const searchFrom = 50

// errNeeded keeps a task in the queue: its message is still there.
var errNeeded = errors.New("the message is still there")

// orphans are the ids of tasks whose messages were cancelled, by queue; searchFrom of a queue at most. To
// remove one task from a waiting list, Redis searches the list. So many tasks are removed in one search:
// half a million, each removed by itself, took hours.
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
