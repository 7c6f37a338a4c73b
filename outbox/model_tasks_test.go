package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/internal/queue"
)

// The queue of the model: real tasks in Redis. The history chooses the order in which a worker takes them.

// tasksLua lists the tasks in Redis: names of their hashes and their states.
const tasksLua = `
local out = {}
for _, key in ipairs(redis.call('KEYS', 'asynq:*:t:*')) do
  out[#out + 1] = key
  out[#out + 1] = redis.call('HGET', key, 'state')
end
return out`

// wakeups are the tasks a worker may find, in the order of their messages.
func (m *model) wakeups() []queue.Task {
	m.rt.Helper()
	flat, err := m.store.DB.Client().Eval(m.ctx, tasksLua, nil).StringSlice()
	if err != nil {
		m.rt.Fatal(err)
	}
	var tasks []queue.Task
	for i := 0; i < len(flat); i += 2 {
		name, id, _ := strings.Cut(strings.TrimPrefix(flat[i], "asynq:{"), "}:t:")
		if st := queue.State(flat[i+1]); st != queue.Archived && st != queue.Completed {
			tasks = append(tasks, queue.Task{Queue: name, Type: TaskDeliver, ID: id, Payload: []byte(messageOf(id))})
		}
	}
	slices.SortFunc(tasks, func(a, b queue.Task) int {
		if n := slices.Index(m.ids, messageOf(a.ID)) - slices.Index(m.ids, messageOf(b.ID)); n != 0 {
			return n
		}
		return strings.Compare(a.ID, b.ID)
	})
	return tasks
}

// work makes a process handle a task. The verdict is acknowledged or lost.
func (m *model) work() {
	t, ok := m.anyTask()
	if !ok {
		return
	}
	m.do("work", func(ctx context.Context, b *Outbox) func() {
		v := b.Delivery.Deliver(ctx, t)
		return func() { m.acknowledge(t, v) }
	})
}

// anyTask picks one.
func (m *model) anyTask() (queue.Task, bool) {
	tasks := m.wakeups()
	if len(tasks) == 0 {
		return queue.Task{}, false
	}
	return tasks[rapid.IntRange(0, len(tasks)-1).Draw(m.rt, "task")], true
}

// workAll handles every task there is.
func (m *model) workAll() {
	for _, t := range m.wakeups() {
		m.acknowledge(t, m.procs[0].Delivery.Deliver(m.ctx, t))
	}
}

// acknowledge changes a task as the queue does after a verdict. A task that comes back later stays as it is,
// because a worker may take one early.
func (m *model) acknowledge(t queue.Task, v queue.Verdict) {
	switch v.String() {
	case "done", "drop":
		m.store.Control.Delete(m.ctx, t.Queue, t.ID)
	case "bury":
		m.store.Control.Archive(m.ctx, t.Queue, t.ID)
	}
}

// meddle changes the queue without Postroom.
func (m *model) meddle(how string) {
	if how == "flush queues" {
		if rapid.IntRange(0, 4).Draw(m.rt, "really") == 0 {
			m.store.DB.Client().Eval(m.ctx,
				`for _, key in ipairs(redis.call('KEYS', 'asynq:*')) do redis.call('DEL', key) end`, nil)
		}
		return
	}
	t, ok := m.anyTask()
	if !ok {
		return
	}
	change := map[string]func(context.Context, string, ...string) []error{"lose task": m.store.Control.Delete,
		"archive task": m.store.Control.Archive}[how]
	if err := change(m.ctx, t.Queue, t.ID)[0]; err != nil {
		m.rt.Fatal(fmt.Errorf("%s %s: %w", how, t.ID, err))
	}
}
