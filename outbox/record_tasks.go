package outbox

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/queue"
)

// task names a task of the queue.
type task struct{ queue, id string }

// task is the one that wakes this message.
func (r row) task(partition int) task {
	return task{queue: laneQueue(r.lane, partition), id: taskID(r.id, r.epoch)}
}

// forget removes tasks of messages that no longer need them. Whether that works is only a matter of tidiness:
// a task would find its message gone.
func (s *store) forget(ctx context.Context, tasks ...task) {
	queues := map[string][]string{}
	for _, t := range tasks {
		queues[t.queue] = append(queues[t.queue], t.id)
	}
	for name, ids := range queues {
		for i, err := range s.Control.Delete(ctx, name, ids...) {
			if err != nil {
				s.log.DebugContext(ctx, "task left behind", "message_id", messageOf(ids[i]), "queue", name, "error", err)
			}
		}
	}
}

// former names the task a message had before it was woken.
func (w wakeup) former(p int) task {
	epoch, _ := strconv.Atoi(w.epoch)
	return task{queue: laneQueue(api.Lane(w.lane), p), id: taskID(w.id, strconv.Itoa(epoch-1))}
}

// TaskDeliver is the type of the tasks that wake the delivery of a message. The message's id is the part of
// the task's id before the dot; there is no payload, so that Redis keeps a task in its compact form (64 bytes
// at most): a million of them take 230 MB less.
const TaskDeliver = "deliver"

// laneQueue is the queue a lane's tasks of a partition wait in.
func laneQueue(lane api.Lane, partition int) string {
	if lane == api.Bulk {
		return queue.Lane(queue.Bulk, partition)
	}
	return queue.Lane(queue.Submit, partition)
}

// lanesOf are the lanes that a queue of the API stands for: submit is all sending, bulk its bulk half. Others
// have none.
func lanesOf(name string) []api.Lane {
	switch name {
	case queue.Submit:
		return []api.Lane{api.Transactional, api.Bulk}
	case queue.Bulk:
		return []api.Lane{api.Bulk}
	}
	return nil
}

// pausedLanes says which lanes are paused. A lane is spread over partitions, each with a queue of its own; it
// is paused when all are.
func (s *store) pausedLanes(ctx context.Context) (map[api.Lane]bool, error) {
	paused := map[api.Lane]bool{}
	for _, lane := range lanesOf(queue.Submit) {
		paused[lane] = true
		for p := range s.DB.Partitions() {
			is, err := s.Control.Paused(ctx, laneQueue(lane, p))
			if err != nil {
				return nil, away(err, fmt.Sprintf("ask whether queue %s is paused", laneQueue(lane, p)))
			}
			paused[lane] = paused[lane] && is
		}
	}
	return paused, nil
}

// wakeup is a task owed to a message.
type wakeup struct {
	id, lane, epoch string
	due             time.Time // zero: now
}

// enqueue queues wake-ups, many in one round trip. Those that fail stay owed, and the sweeper tries again.
func (s *store) enqueue(ctx context.Context, wakeups ...wakeup) {
	if len(wakeups) == 0 {
		return
	}
	now := s.clock.Now()
	tasks := make([]queue.Task, len(wakeups))
	for i, w := range wakeups {
		p, _ := partitionOf(w.id, s.DB.Partitions())
		tasks[i] = queue.Task{
			Queue: laneQueue(api.Lane(w.lane), p), Type: TaskDeliver, ID: taskID(w.id, w.epoch),
		}
		if w.due.After(now) {
			tasks[i].At = w.due
		}
	}
	for i, err := range s.Queue.Enqueue(ctx, tasks...) {
		if err != nil {
			s.log.WarnContext(ctx, "wake-up not queued yet", "message_id", wakeups[i].id, "error", err)
			continue
		}
		if p, ok := partitionOf(wakeups[i].id, s.DB.Partitions()); ok {
			s.queued.note(p, wakeups[i].id)
		}
	}
}
