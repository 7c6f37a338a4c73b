package outbox

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// task names a task of the queue.
type task struct{ queue, id string }

// task is the current task of the message.
func (r row) task() task {
	return task{queue: laneQueue(r.lane, r.partition), id: taskID(r.id, r.epoch)}
}

// forget deletes tasks that their messages no longer need. An error is only logged, because such a task would
// find its message gone.
func (s *store) forget(ctx context.Context, tasks ...task) {
	queues := map[string][]string{}
	for _, t := range tasks {
		queues[t.queue] = append(queues[t.queue], t.id)
	}
	for name, ids := range queues {
		s.deleteTasks(ctx, name, ids)
	}
}

func (s *store) deleteTasks(ctx context.Context, queue string, ids []string) {
	for i, err := range s.Control.Delete(ctx, queue, ids...) {
		if err != nil {
			s.log.DebugContext(ctx, "task left behind", "message_id", messageOf(ids[i]), "queue", queue, "error", err)
		}
	}
}

// former is the task that the message had before this wake-up.
func (w wakeup) former(p int) task {
	epoch, _ := strconv.Atoi(w.Epoch)
	return task{queue: laneQueue(w.Lane, p), id: taskID(w.ID, strconv.Itoa(epoch-1))}
}

// TaskDeliver is the type of the tasks that wake the delivery of a message. The message's id is the part of
// the task's id before the dot. There is no payload, so that Redis keeps the task in its compact form (at
// most 64 bytes): a million tasks take 230 MB less.
const TaskDeliver = "deliver"

// laneQueue is the queue for the tasks of a lane in a partition.
func laneQueue(lane api.Lane, partition int) string {
	if lane == api.Bulk {
		return queue.Lane(queue.Bulk, partition)
	}
	return queue.Lane(queue.Submit, partition)
}

// lanesOf returns the lanes of an API queue: submit has both lanes, bulk the bulk lane, others none.
func lanesOf(name string) []api.Lane {
	switch name {
	case queue.Submit:
		return []api.Lane{api.Transactional, api.Bulk}
	case queue.Bulk:
		return []api.Lane{api.Bulk}
	}
	return nil
}

// pausedQueues returns which queues of messages are paused. A lane has a queue in each partition.
func (s *store) pausedQueues(ctx context.Context) (map[string]bool, error) {
	var names []string
	for p := range s.DB.Partitions() {
		for _, lane := range lanesOf(queue.Submit) {
			names = append(names, laneQueue(lane, p))
		}
	}
	paused, err := s.Control.Paused(ctx, names...)
	if err != nil {
		return nil, redisError(err, "ask which queues are paused")
	}
	are := make(map[string]bool, len(paused))
	for name := range paused {
		are[name] = true
	}
	return are, nil
}

// wakeup is a task that a message needs.
type wakeup struct {
	ID    string // the message's
	Lane  api.Lane
	Epoch string
	Due   time.Time // zero means now
}

// enqueue queues the tasks of messages in one round trip. If that fails, the sweeper tries again.
func (s *store) enqueue(ctx context.Context, wakeups ...wakeup) {
	if len(wakeups) == 0 {
		return
	}
	now := s.clock.Now()
	tasks := make([]queue.Task, len(wakeups))
	for i, w := range wakeups {
		tasks[i] = queue.Task{
			Queue: laneQueue(w.Lane, s.partition(w.ID)), Type: TaskDeliver, ID: taskID(w.ID, w.Epoch),
		}
		if w.Due.After(now) {
			tasks[i].At = w.Due
		}
	}
	for i, err := range s.Queue.Enqueue(ctx, tasks...) {
		if err != nil {
			s.log.WarnContext(ctx, "wake-up not queued yet", "message_id", wakeups[i].ID, "error", err)
			continue
		}
		s.queued.note(s.partition(wakeups[i].ID), wakeups[i].ID)
	}
}

// window returns how many messages of an account may have a task: three for each connection of its relays, so
// that some wait in line, and at most Options.Window.
func (s *store) window(ctx context.Context, account string) int {
	a, err := s.Accounts.Resolve(ctx, account)
	if err != nil {
		return s.opts.Window
	}
	return s.windowOf(a)
}

func (s *store) windowOf(a accounts.Sender) int {
	connections := 0
	for _, r := range a.Relays {
		connections += r.Most()
	}
	if connections == 0 { // its messages name their gateways
		return s.opts.Window
	}
	return min(s.opts.Window, 3*connections)
}

// noteEvery is how often the notes are written. It is well below owedAfter, so that the sweeper queues no
// task a second time.
const noteEvery = 200 * time.Millisecond

// queuedNotes collects the messages whose task was queued. It removes many of them at a time from the sorted
// set unqueued, which saves a round trip for each message.
type queuedNotes struct {
	store *store
	mu    sync.Mutex
	notes map[int][]any // ids by partition
}

func newQueuedNotes(s *store) *queuedNotes { return &queuedNotes{store: s, notes: map[int][]any{}} }

func (q *queuedNotes) note(partition int, id string) {
	q.mu.Lock()
	q.notes[partition] = append(q.notes[partition], id)
	q.mu.Unlock()
}

func (q *queuedNotes) run(ctx context.Context) {
	tick := time.NewTicker(noteEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			q.flush(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			q.flush(last)
			cancel()
			return
		}
	}
}

// flush writes the notes. If that fails, the sweeper queues a task that exists, which does no harm.
func (q *queuedNotes) flush(ctx context.Context) {
	q.mu.Lock()
	notes := q.notes
	q.notes = make(map[int][]any, len(notes))
	q.mu.Unlock()
	for partition, ids := range notes {
		if err := q.store.DB.Client().ZRem(ctx, redisdb.Key(partition, "unqueued"), ids...).Err(); err != nil {
			q.store.log.DebugContext(ctx, "queued messages not noted", "count", len(ids), "error", err)
		}
	}
}
