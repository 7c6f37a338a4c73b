package outbox

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// Why a message was cancelled, as its event says.
const (
	ReasonAPI       = "api"
	ReasonDashboard = "dashboard"
	ReasonAccount   = "account deleted"
	reasonRetention = "retention" // why a dead letter was deleted
)

// Operations change messages that wait or failed: cancel, retry, reschedule, replay.
type Operations struct {
	*store
	reader *Reader
}

// changedTries is how often change reads a message that is changed again and again.
const changedTries = 10

// change reads a live message and writes it with a script, and repeats both if another change came in
// between. write returns the first word of the script's answer, and so does change: GONE if there is no such
// message, and CHANGED after changedTries.
func (d *Operations) change(ctx context.Context, id string, write func(row) (word string, err error)) (string,
	error) {
	if _, ok := partitionOf(id, d.DB.Partitions()); !ok {
		return "GONE", nil
	}
	if err := d.clock.ready(ctx, d.DB.Client()); err != nil {
		return "", redisError(err, "change message "+id)
	}
	for range changedTries {
		rows, err := d.readRows(ctx, []entry{{id: id}})
		if err != nil {
			return "", redisError(err, "read message "+id)
		}
		if len(rows) == 0 {
			return "GONE", nil
		}
		if word, err := write(rows[0]); err != nil || word != "CHANGED" {
			return word, err
		}
	}
	return "CHANGED", nil
}

// Cancel cancels a message. If it is being sent at this moment, it stays, and the answer has a code. An
// unknown message is not an error.
func (d *Operations) Cancel(ctx context.Context, id, reason string) (api.DeleteAnswer, error) {
	answer, left, err := d.cancel(ctx, id, reason)
	if err == nil && answer.Deleted {
		d.forget(ctx, left...)
	}
	return answer, err
}

// CancelAll cancels every message that the query selects, oldest first. It counts messages that stay because
// they are being sent.
func (d *Operations) CancelAll(ctx context.Context, q api.OutboxQuery, reason string) (api.BulkDeleteAnswer,
	error) {
	var total api.BulkDeleteAnswer
	q.Page, q.PageSize, q.Cursor = 0, scanChunk, ""
	paused, err := d.pausedQueues(ctx)
	if err != nil {
		return total, err
	}
	still := func(r row) bool { return inState(q.State, shown(r.state, paused[r.task().queue])) }
	left := orphans{}
	defer d.deleteOrphans(ctx, left)
	err = d.eachPage(ctx, q, paused, func(entries []entry) error {
		some, tasks, err := d.cancelEach(ctx, entries, reason, still)
		left.add(tasks)
		total.Deleted, total.Active = total.Deleted+some.Deleted, total.Active+some.Active
		return err
	})
	return total, err
}

// eachPage calls do with the messages that a query selects, page by page.
func (d *Operations) eachPage(ctx context.Context, q api.OutboxQuery, paused map[string]bool,
	do func([]entry) error) error {
	for {
		found, err := d.reader.find(ctx, q, paused, scanChunk)
		if err != nil {
			return redisError(err, "list the messages to change")
		}
		if err := do(found.page); err != nil || !found.more {
			return err
		}
		q.Cursor = found.next
	}
}

// cancelEach cancels the messages that are still as they were selected. It takes two round trips, and two
// more whenever one has changed since. It returns their tasks, which the caller removes.
func (d *Operations) cancelEach(ctx context.Context, entries []entry, reason string, still func(row) bool) (
	total api.BulkDeleteAnswer, left []task, _ error) {
	for try := 1; len(entries) > 0; try++ {
		rows, err := d.readRows(ctx, entries)
		if err != nil {
			return total, left, redisError(err, "read the messages to cancel")
		}
		rows = slices.DeleteFunc(rows, func(r row) bool { return !still(r) })
		pipe := d.DB.Pipeline()
		answers := make([]*redisdb.Reply[outcomeWord], len(rows))
		for i, r := range rows {
			args, err := d.cancelArgs(r, reason)
			if err != nil {
				return total, left, err
			}
			answers[i] = cancelScript.Add(pipe, []string{d.keys.message(r.partition, r.id)}, args)
		}
		if err := pipe.Exec(ctx); err != nil {
			return total, left, redisError(err, "cancel messages")
		}
		entries = nil
		for i, r := range rows {
			switch answer, _ := answers[i].Read(); { // an error would be Exec's
			case answer.Word == "OK":
				left = append(left, r.task())
				d.cancelled(ctx, r, reason)
				total.Deleted++
			case answer.Word == "CHANGED" && try < changedTries:
				entries = append(entries, entry{id: r.id})
			case answer.Word != "GONE":
				total.Active++
			}
		}
	}
	return total, left, nil
}

// cancel cancels a message in the record and returns its task, which the caller removes.
func (d *Operations) cancel(ctx context.Context, id, reason string) (answer api.DeleteAnswer, left []task,
	_ error) {
	if err := d.clock.ready(ctx, d.DB.Client()); err != nil {
		return answer, nil, redisError(err, "cancel message "+id)
	}
	total, left, err := d.cancelEach(ctx, entriesOf([]string{id}), reason, func(row) bool { return true })
	if answer.Deleted = total.Deleted > 0; total.Active > 0 {
		answer.Code = "MessageActive"
	}
	return answer, left, err
}

// cancelArgs returns the arguments of cancel.lua. The event is about the recipients that are not done. A dead
// letter has none, so it gets no event.
func (d *Operations) cancelArgs(r row, reason string) (args cancelArgs, _ error) {
	now := d.clock.Now()
	events, st, result := r.envelope.events(now), r.endsAt(now), resultFailed
	if r.state != stateFailed {
		result = resultCancelled
		left := st.having(rcptQueued)
		if err := events.add(event.MessageCancelled, event.Cancelled{
			Message: r.about(left), Reason: reason, InDoubt: r.mayBeThere(),
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
		TakenBack: reason != reasonRetention, KeepKey: d.keepKey(), Events: events.lines}, err
}

// cancelled logs and counts a cancelled message. A dead letter ended when it failed, so it is not counted
// again.
func (d *Operations) cancelled(ctx context.Context, r row, reason string) {
	if r.state == stateFailed {
		d.mail.forgotten(ctx, r.id, reason)
		return
	}
	d.mail.cancelled(ctx, r.id, reason)
	d.metrics.ended.WithLabelValues(resultCancelled).Inc()
}
