package outbox

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
)

// The functions of this file change a message before an operator changes its task in the queue's dashboard.
// They return nil if the task may be changed too.

// TaskDeleted cancels the message of a task that is about to be deleted.
func (d *Operations) TaskDeleted(ctx context.Context, taskID string) error {
	id := messageOf(taskID)
	answer, _, err := d.cancel(ctx, id, ReasonDashboard)
	if err == nil && answer.Code != "" {
		return messageActive(id)
	}
	return err
}

func messageActive(id string) error {
	return fault.New(fault.Conflict, "MessageActive", "Message %s is being sent right now", id)
}

// TaskRun makes the message of a task due, before the task is run ahead of its time. A dead letter is
// replayed.
func (d *Operations) TaskRun(ctx context.Context, taskID string) error {
	_, err := d.Retry(ctx, messageOf(taskID))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// TaskArchived fails the message of a task that is about to be archived: it becomes a dead letter, which can
// be replayed.
func (d *Operations) TaskArchived(ctx context.Context, taskID string) error {
	id := messageOf(taskID)
	word, err := d.change(ctx, id, func(r row) (string, error) {
		if r.state == stateFailed {
			return "GONE", nil
		}
		args, err := d.buryArgs(r)
		if err != nil {
			return "", err
		}
		answer, err := run(ctx, d.store, cancelScript, r.partition, id, args)
		if answer.Word == "OK" {
			d.metrics.ended.WithLabelValues("failed").Inc()
			d.mail.failed(ctx, id, r.attempts, nil, archivedByOperator(), false)
		}
		return answer.Word, err
	})
	switch word {
	case "ACTIVE":
		return messageActive(id)
	case "CHANGED":
		return messageChanged(id)
	}
	return err
}

func messageChanged(id string) error {
	return fault.New(fault.Conflict, "MessageChanged", "Message %s keeps changing; try again", id)
}

func archivedByOperator() *lastError {
	return &lastError{Message: "archived by an operator", Code: "EARCHIVED"}
}

// buryArgs returns the arguments of cancel.lua for a message that fails: the recipients that are not done
// have failed, and the event says why.
func (d *Operations) buryArgs(r row) (args cancelArgs, err error) {
	now := d.clock.Now()
	st := r.endsAt(now)
	st.Recipients = slices.Clone(st.Recipients)
	left := st.having(rcptQueued)
	recipients := make([]event.Recipient, len(left))
	for n, i := range left {
		st.Recipients[i].Status = rcptFailed
		recipients[n] = event.Recipient{Address: r.envelope.To[i], Status: rcptFailed,
			Attempts: st.Recipients[i].Attempts}
	}
	st.Last, st.Lost = archivedByOperator(), archivedByOperator()
	data := event.Failed{
		Message: r.about(left), Recipients: recipients,
		Failure: event.Failure{Error: st.Last.Message, ErrorCode: st.Last.Code, InDoubt: r.mayBeThere()},
		Job:     event.Job{ID: r.id, AttemptsMade: r.attempts, Attempts: r.max},
	}
	keep := d.opts.KeepDeadLetters >= 0
	if keep {
		data.DeadLetter = r.id
	}
	events := r.envelope.events(now)
	if err := events.add(event.MessageFailed, data, left, 0, st.Last.Message); err != nil {
		return args, err
	}
	st = events.remember(st)
	args = cancelArgs{ID: r.id, Now: now, State: r.state, Fence: r.fence, Result: resultFailed,
		Counter: "failed", KeepKey: d.keepKey(), Events: events.lines}
	if keep {
		args.Status, err = d.jsons.pack(r.id, &st)
	} else {
		args.Record, err = d.ending(r, st, resultFailed, "", now)
	}
	return args, err
}
