package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/postroom/postroom/redisdb"
)

// noteEvery is how often the notes are written: well below owedAfter, so that the sweeper does not queue
// again what is queued.
const noteEvery = 200 * time.Millisecond

// queuedNotes collects the messages whose task was enqueued, and strikes them off the list of those owed one,
// many at a time: a round trip a message would be a round trip too many.
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

// flush writes the notes taken so far. What can't be written is forgotten: the sweeper then enqueues a task
// that exists, which is nothing.
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
