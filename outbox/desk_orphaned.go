package outbox

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/queue"
)

// searchFrom is how many tasks of one queue it takes to walk along all of it rather than to look for each.
const searchFrom = 50

// errNeeded keeps a task in the queue: its message is still there.
var errNeeded = errors.New("the message is still there")

// orphans collects the tasks of messages that a bulk cancel took back. To take one out of a waiting list
// Redis walks along the list, so for many of them it is one walk at the end for all: half a million, each on
// its own, took hours.
type orphans struct {
	d     *Desk
	tasks map[string][]string // ids by queue, the first few
}

func (o *orphans) add(_ context.Context, tasks ...task) {
	if o.tasks == nil {
		o.tasks = map[string][]string{}
	}
	for _, t := range tasks {
		if len(o.tasks[t.queue]) < searchFrom {
			o.tasks[t.queue] = append(o.tasks[t.queue], t.id)
		}
	}
}

// clear removes the tasks. Like forget it is only a matter of tidiness.
func (o *orphans) clear(ctx context.Context) {
	for name, ids := range o.tasks {
		if len(ids) < searchFrom {
			for _, id := range ids {
				o.d.forget(ctx, task{queue: name, id: id})
			}
			continue
		}
		for _, state := range []queue.State{queue.Scheduled, queue.Retrying, queue.Waiting} {
			if _, err := o.d.Control.DeleteAll(ctx, name, state, o.d.needed); err != nil {
				o.d.log.DebugContext(ctx, "tasks left behind", "queue", name, "error", err)
			}
		}
	}
}

// needed objects to the removal of tasks whose messages are still there.
func (d *Desk) needed(ctx context.Context, ids []string) []error {
	errs := make([]error, len(ids))
	there, err := d.exist(ctx, ids)
	for i := range ids {
		switch {
		case err != nil:
			errs[i] = err
		case there[i]:
			errs[i] = errNeeded
		}
	}
	return errs
}

// exist says which of some tasks have a message.
func (d *Desk) exist(ctx context.Context, tasks []string) ([]bool, error) {
	pipe := d.DB.Client().Pipeline()
	for _, t := range tasks {
		id := messageOf(t)
		p, _ := partitionOf(id, d.DB.Partitions())
		pipe.Exists(ctx, d.keys.message(p, id))
	}
	there := make([]bool, len(tasks))
	cmds, err := pipe.Exec(ctx)
	if err != nil {
		return there, err
	}
	for i, c := range cmds {
		there[i] = c.(*redis.IntCmd).Val() == 1
	}
	return there, nil
}
