package outbox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
)

// Why a message was cancelled, as its event says.
const (
	ReasonAPI       = "api"
	ReasonDashboard = "dashboard"
	ReasonAccount   = "account deleted"
)

// changedTries is how often an operator's verb reads a message again that changed under its hands.
const changedTries = 10

// Cancel takes a message back. A message that is being sent is left alone, which the answer's code says; an unknown one is not an error.
func (b *Outbox) Cancel(ctx context.Context, id, reason string) (api.DeleteAnswer, error) {
	answer, left, err := b.cancel(ctx, id, reason)
	if err == nil && answer.Deleted {
		b.forget(ctx, left)
	}
	return answer, err
}

// CancelAll takes back every message the query selects, oldest first, and counts those it had to leave because they were being sent.
func (b *Outbox) CancelAll(ctx context.Context, q api.OutboxQuery, reason string) (api.BulkDeleteAnswer, error) {
	var total api.BulkDeleteAnswer
	q.Page, q.PageSize, q.Cursor = 0, scanChunk, ""
	paused, err := b.pausedLanes(ctx)
	if err != nil {
		return total, err
	}
	for {
		found, err := b.find(ctx, q, paused)
		if err != nil {
			return total, away(err, "list the messages to cancel")
		}
		for _, e := range found.page {
			answer, left, err := b.cancel(ctx, e.id, reason)
			if err != nil {
				return total, err
			}
			switch {
			case answer.Deleted:
				total.Deleted++
				b.forget(ctx, left)
			case answer.Code != "":
				total.Active++
			}
		}
		if !found.more {
			return total, nil
		}
		q.Cursor = found.page[len(found.page)-1].cursor()
	}
}

// task names a task of the queue.
type task struct{ queue, id string }

// task is the one that wakes this message.
func (r row) task(partition int) task {
	return task{queue: laneQueue(r.lane, partition), id: taskID(r.id, r.epoch)}
}

// cancel takes a message back in the record; what is left of it in the queue is the caller's to remove.
func (b *Outbox) cancel(ctx context.Context, id, reason string) (api.DeleteAnswer, task, error) {
	p, ok := partitionOf(id, b.DB.Partitions())
	if !ok {
		return api.DeleteAnswer{}, task{}, nil
	}
	for range changedTries {
		rows, err := b.readRows(ctx, []entry{{id: id}})
		if err != nil {
			return api.DeleteAnswer{}, task{}, away(err, "read message "+id)
		}
		if len(rows) == 0 {
			return api.DeleteAnswer{}, task{}, nil
		}
		args, err := b.cancelArgs(rows[0], reason)
		if err != nil {
			return api.DeleteAnswer{}, task{}, err
		}
		answer, err := b.store.run(ctx, cancelScript, p, id, args...)
		if err != nil {
			return api.DeleteAnswer{}, task{}, err
		}
		switch answer[0] {
		case "OK":
			b.mail.cancelled(ctx, id, reason)
			b.metrics.ended.WithLabelValues("cancelled").Inc()
			return api.DeleteAnswer{Deleted: true}, rows[0].task(p), nil
		case "ACTIVE":
			return api.DeleteAnswer{Code: "MessageActive"}, task{}, nil
		case "GONE":
			return api.DeleteAnswer{}, task{}, nil
		}
	}
	return api.DeleteAnswer{Code: "MessageActive"}, task{}, nil
}

// cancelArgs builds the trace and the event of a cancellation. The recipients that are done already have had their last word; a failed
// message has none left, and goes without an event.
func (b *Outbox) cancelArgs(r row, reason string) ([]any, error) {
	now := b.clock.Now()
	trace, err := json.Marshal(ended{Account: r.envelope.Account, MessageID: r.envelope.MessageID, Result: "cancelled", At: now})
	if err != nil {
		return nil, fmt.Errorf("write trace of message %s: %w", r.id, err)
	}
	args := []any{r.id, millis(now), r.state, r.fence, trace, b.traceLife()}
	left := r.status.having(rcptQueued)
	if len(left) == 0 {
		return args, nil
	}
	l, err := line(event.MessageCancelled, r.envelope.Account, now, event.Cancelled{
		Message: r.envelope.about(r.id, r.lane, r.gateway, r.envelope.addresses(left)), Reason: reason,
	})
	return append(args, l), err
}

// forget removes the task of a message that no longer needs one. Whether that works is only a matter of tidiness: the task would find the
// message gone.
func (b *Outbox) forget(ctx context.Context, t task) {
	if err := b.Control.Delete(ctx, t.queue, t.id)[0]; err != nil {
		b.log.DebugContext(ctx, "task of a cancelled message left behind", "message_id", messageOf(t.id), "queue", t.queue, "error", err)
	}
}
