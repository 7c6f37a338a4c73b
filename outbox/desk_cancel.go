package outbox

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/redisdb"
)

// Why a message was cancelled, as its event says.
const (
	ReasonAPI       = "api"
	ReasonDashboard = "dashboard"
	ReasonAccount   = "account deleted"
	reasonRetention = "retention" // of a dead letter
)

// changedTries is how often an operator's verb reads a message again that changed under its hands.
const changedTries = 10

// Desk changes messages that wait or failed, as an operator or a client wishes: cancel, retry, reschedule,
// replay.
type Desk struct {
	*store
	reader *Reader
}

// Cancel takes a message back. A message that is being sent is left alone, which the answer's code says; an
// unknown one is not an error.
func (d *Desk) Cancel(ctx context.Context, id, reason string) (api.DeleteAnswer, error) {
	answer, left, err := d.cancel(ctx, id, reason)
	if err == nil && answer.Deleted {
		d.forget(ctx, left)
	}
	return answer, err
}

// CancelAll takes back every message the query selects, oldest first, and counts those it had to leave
// because they were being sent.
func (d *Desk) CancelAll(ctx context.Context, q api.OutboxQuery, reason string) (api.BulkDeleteAnswer,
	error) {
	var total api.BulkDeleteAnswer
	q.Page, q.PageSize, q.Cursor = 0, scanChunk, ""
	paused, err := d.pausedLanes(ctx)
	if err != nil {
		return total, err
	}
	still := func(r row) bool { return q.State == "" || q.State == shown(r.state, paused[r.lane]) }
	gone := orphans{d: d}
	defer gone.clear(ctx)
	for {
		found, err := d.reader.find(ctx, q, paused, scanChunk)
		if err != nil {
			return total, away(err, "list the messages to cancel")
		}
		some, err := d.cancelEach(ctx, found.page, reason, still, gone.add)
		total.Deleted, total.Active = total.Deleted+some.Deleted, total.Active+some.Active
		if err != nil || !found.more {
			return total, err
		}
		q.Cursor = found.next
	}
}

// cancelEach takes back those of some messages that still are as they were chosen, a few round trips for all
// of them. What is left of them in the queue goes to forget.
func (d *Desk) cancelEach(ctx context.Context, entries []entry, reason string, still func(row) bool,
	forget func(context.Context, ...task)) (api.BulkDeleteAnswer, error) {
	var total api.BulkDeleteAnswer
	rows, err := d.readRows(ctx, entries)
	if err != nil {
		return total, away(err, "read the messages to cancel")
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return !still(r) })
	pipe := d.DB.Pipeline()
	answers := make([]*redisdb.Reply[outcomeWord], len(rows))
	for i, r := range rows {
		p, _ := partitionOf(r.id, d.DB.Partitions())
		args, err := d.cancelArgs(r, reason)
		if err != nil {
			return total, err
		}
		answers[i] = cancelScript.Add(pipe, []string{d.keys.message(p, r.id)}, args)
	}
	if err := pipe.Exec(ctx); err != nil {
		return total, away(err, "cancel messages")
	}
	var gone []task
	for i, r := range rows {
		answer, _ := answers[i].Read() // an error would be Exec's
		switch answer.Word {
		case "OK":
			p, _ := partitionOf(r.id, d.DB.Partitions())
			gone = append(gone, r.task(p))
			d.cancelled(ctx, r, reason)
			total.Deleted++
		case "ACTIVE":
			total.Active++
		case "CHANGED":
			one, _, err := d.cancel(ctx, r.id, reason)
			if err != nil {
				return total, err
			}
			if one.Deleted {
				total.Deleted++
			}
		}
	}
	forget(ctx, gone...)
	return total, nil
}

// cancel takes a message back in the record; what is left of it in the queue is the caller's to remove.
func (d *Desk) cancel(ctx context.Context, id, reason string) (api.DeleteAnswer, task, error) {
	p, ok := partitionOf(id, d.DB.Partitions())
	if !ok {
		return api.DeleteAnswer{}, task{}, nil
	}
	for range changedTries {
		rows, err := d.readRows(ctx, []entry{{id: id}})
		if err != nil {
			return api.DeleteAnswer{}, task{}, away(err, "read message "+id)
		}
		if len(rows) == 0 {
			return api.DeleteAnswer{}, task{}, nil
		}
		args, err := d.cancelArgs(rows[0], reason)
		if err != nil {
			return api.DeleteAnswer{}, task{}, err
		}
		answer, err := run(ctx, d.store, cancelScript, p, id, args)
		if err != nil {
			return api.DeleteAnswer{}, task{}, err
		}
		switch answer.Word {
		case "OK":
			d.cancelled(ctx, rows[0], reason)
			return api.DeleteAnswer{Deleted: true}, rows[0].task(p), nil
		case "ACTIVE":
			return api.DeleteAnswer{Code: "MessageActive"}, task{}, nil
		case "GONE":
			return api.DeleteAnswer{}, task{}, nil
		}
	}
	return api.DeleteAnswer{Code: "MessageActive"}, task{}, nil
}

// cancelArgs builds what cancel.lua writes. The recipients that are done already have had their last word; a
// dead letter has none left, and goes without an event.
func (d *Desk) cancelArgs(r row, reason string) (args cancelArgs, _ error) {
	now := d.clock.Now()
	events, st, result := changeEvents{account: r.envelope.Account, at: now}, r.status, resultFailed
	if r.state != stateFailed {
		result = resultCancelled
		left := st.having(rcptQueued)
		if err := events.add(event.MessageCancelled, event.Cancelled{
			Message: r.envelope.about(r.id, r.lane, r.gateway, r.envelope.addresses(left)), Reason: reason,
			InDoubt: r.mayBeThere(),
		}, left, 0, reason); err != nil {
			return args, err
		}
		st.Recipients = slices.Clone(st.Recipients)
		for _, i := range left {
			st.Recipients[i].Status = rcptCancelled
		}
	}
	record, err := d.ending(r, events.remember(st), result, reason, now)
	return cancelArgs{ID: r.id, Now: now, State: r.state, Fence: r.fence, Result: result, Record: record,
		Events: events.lines}, err
}

// cancelled tells the operator. That a dead letter is forgotten ends no message: it ended when it failed.
func (d *Desk) cancelled(ctx context.Context, r row, reason string) {
	if r.state == stateFailed {
		d.mail.forgotten(ctx, r.id, reason)
		return
	}
	d.mail.cancelled(ctx, r.id, reason)
	d.metrics.ended.WithLabelValues(resultCancelled).Inc()
}
