package outbox

import (
	"context"
	"slices"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
)

// What an operator does to a task in the queue's dashboard, done to its message first. Each is told a task's
// id, and answers nil when the record agrees, so that the task may follow.

// TaskDeleted cancels the message of a task that is about to be deleted.
func (d *Desk) TaskDeleted(ctx context.Context, taskID string) error {
	answer, _, err := d.cancel(ctx, messageOf(taskID), ReasonDashboard)
	if err == nil && answer.Code != "" {
		return fault.New(fault.Conflict, answer.Code, "The message is being sent at this moment")
	}
	return err
}

// TaskRun makes the message of a task due, when the task is about to be run before its time. A dead letter is
// replayed.
func (d *Desk) TaskRun(ctx context.Context, taskID string) error {
	_, err := d.Retry(ctx, messageOf(taskID))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// TaskArchived fails the message of a task that is about to be archived: it becomes a dead letter, which can
// be replayed.
func (d *Desk) TaskArchived(ctx context.Context, taskID string) error {
	id := messageOf(taskID)
	p, ok := partitionOf(id, d.DB.Partitions())
	if !ok {
		return nil
	}
	for range changedTries {
		rows, err := d.readRows(ctx, []entry{{id: id}})
		if err != nil {
			return away(err, "read message "+id)
		}
		if len(rows) == 0 || rows[0].state == stateFailed {
			return nil
		}
		args, err := d.buryArgs(rows[0])
		if err != nil {
			return err
		}
		answer, err := run(ctx, d.store, buryScript, p, id, args)
		if err != nil {
			return err
		}
		switch answer.Word {
		case "OK":
			d.metrics.ended.WithLabelValues("failed").Inc()
			d.mail.failed(ctx, id, rows[0].attempts, nil, archivedByOperator(), false)
			return nil
		case "GONE":
			return nil
		case "ACTIVE":
			return fault.New(fault.Conflict, "MessageActive", "The message is being sent at this moment")
		}
	}
	return fault.New(fault.Conflict, "MessageChanged", "Message %s keeps changing; try again", id)
}

func archivedByOperator() *lastError {
	return &lastError{Message: "archived by an operator", Code: "EARCHIVED"}
}

// buryArgs builds what bury.lua writes: the recipients left have failed, and their event says why.
func (d *Desk) buryArgs(r row) (args buryArgs, _ error) {
	now := d.clock.Now()
	st := r.status
	st.Recipients = slices.Clone(st.Recipients)
	left := st.having(rcptQueued)
	given := make([]event.Recipient, len(left))
	for n, i := range left {
		st.Recipients[i].Status = rcptFailed
		given[n] = event.Recipient{Address: r.envelope.To[i], Status: rcptFailed,
			Attempts: st.Recipients[i].Attempts}
	}
	st.Last = archivedByOperator()
	data := event.Failed{
		Message:    r.envelope.about(r.id, r.lane, r.gateway, r.envelope.addresses(left)),
		Failure:    event.Failure{Error: st.Last.Message, ErrorCode: st.Last.Code, InDoubt: r.mayBeThere()},
		Recipients: given, Job: event.Job{ID: r.id, AttemptsMade: r.attempts, Attempts: r.max},
	}
	if d.opts.KeepDeadLetters >= 0 {
		data.DeadLetter = r.id
	}
	events := changeEvents{account: r.envelope.Account, at: now}
	if err := events.add(event.MessageFailed, data, left, 0, st.Last.Message); err != nil {
		return args, err
	}
	st = events.remember(st)
	args = buryArgs{ID: r.id, Now: now, State: r.state, Fence: r.fence, Events: events.lines}
	var err error
	if d.opts.KeepDeadLetters >= 0 {
		args.Status, err = d.jsons.pack(r.id, st)
	} else {
		args.Record, err = d.ending(r, st, resultFailed, "", now)
	}
	return args, err
}
