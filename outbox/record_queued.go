package outbox

import (
	"context"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

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
