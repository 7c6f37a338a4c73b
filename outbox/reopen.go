package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/queue"
)

// Retry attempts a message now: a delayed one before its time, a failed one again from the start with its attempts counted anew.
func (b *Outbox) Retry(ctx context.Context, id string) (api.OutboxMessage, error) {
	return b.reopen(ctx, id, func(r row, now time.Time) (reopening, error) {
		o := reopening{due: now, attempts: r.attempts, max: r.max, gateway: r.gateway, urgent: true}
		if r.state == stateFailed {
			o.replay, o.attempts = true, 0
		}
		return o, nil
	})
}

// Patch changes when, how often or through which gateway a message that is not being sent will be tried.
func (b *Outbox) Patch(ctx context.Context, id string, p api.OutboxPatch) (api.OutboxMessage, error) {
	if p.Gateway != nil && *p.Gateway != "" {
		if err := b.Accounts.Gateway(ctx, *p.Gateway); err != nil {
			return api.OutboxMessage{}, err
		}
	}
	return b.reopen(ctx, id, func(r row, now time.Time) (reopening, error) {
		if r.state == stateFailed {
			return reopening{}, fault.New(fault.Conflict, "MessageFailed", "Message %s failed for good; retry it instead", id)
		}
		o := reopening{due: fromMillis(r.due), attempts: r.attempts, max: r.max, gateway: r.gateway}
		if p.SendAt != nil {
			o.due = p.SendAt.UTC()
			o.planned = o.due
		}
		if p.DeliveryAttempts != nil {
			o.max = *p.DeliveryAttempts
		}
		if o.max <= r.attempts {
			return o, fault.InvalidFields([]fault.Field{{Key: "deliveryAttempts", Message: fmt.Sprintf("must be more than the %d attempts made", r.attempts)}})
		}
		if p.Gateway != nil {
			o.gateway = *p.Gateway
		}
		return o, nil
	})
}

// reopening is what a message is given anew.
type reopening struct {
	due      time.Time
	planned  time.Time // when the first attempt is wanted; zero: as before
	attempts int
	max      int
	gateway  string
	urgent   bool     // to be tried even while its account is held
	replay   bool     // a dead letter: its failed recipients are queued again
	to       []string // instead of those; none: themselves
	account  string   // that sends it from here on; empty: as before
}

// reopen reads a message, lets plan decide, and writes the plan if the message is still as it was read.
func (b *Outbox) reopen(ctx context.Context, id string, plan func(row, time.Time) (reopening, error)) (api.OutboxMessage, error) {
	p, err := b.store.place(id)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	if err := b.clock.ready(ctx, b.DB.Client()); err != nil {
		return api.OutboxMessage{}, away(err, "reopen message "+id)
	}
	for range changedTries {
		r, err := b.read(ctx, id)
		if err != nil {
			return api.OutboxMessage{}, err
		}
		now := b.clock.Now()
		o, err := plan(r, now)
		if err != nil {
			return api.OutboxMessage{}, err
		}
		after, err := r.apply(o, now)
		if err != nil {
			return api.OutboxMessage{}, err
		}
		if o.replay {
			err = b.replayable(ctx, after)
		}
		var args []any
		if err == nil {
			args, err = b.reopenArgs(r, &after, o, now)
		}
		if err != nil {
			return api.OutboxMessage{}, err
		}
		answer, err := b.store.run(ctx, reopenScript, p, id, args...)
		if err != nil {
			return api.OutboxMessage{}, err
		}
		switch answer[0] {
		case "OK":
			b.rewoken(ctx, p, r, o, answer[1])
			return b.reopened(ctx, after)
		case "ACTIVE":
			return api.OutboxMessage{}, fault.New(fault.Conflict, "MessageActive", "Message %s is being sent at this moment", id)
		case "PURGED":
			return api.OutboxMessage{}, fault.New(fault.Conflict, "ContentGone", "The content of message %s is no longer kept", id)
		}
	}
	return api.OutboxMessage{}, fault.New(fault.Conflict, "MessageChanged", "Message %s keeps changing; try again", id)
}

// replayable refuses to send a dead letter again to nobody but recipients who must not be mailed: it would end without having been sent, and
// be lost.
func (b *Outbox) replayable(ctx context.Context, r row) error {
	queued := r.status.having(rcptQueued)
	stopped, err := b.stops(ctx, r.envelope, r.lane, queued)
	if err != nil || len(stopped) == 0 || len(stopped) < len(queued) {
		return err
	}
	why := skipped(r.envelope, stopped)
	f := fault.New(fault.Conflict, "RecipientSuppressed", "Nobody left in message %s may be mailed (%s): correct the recipient, or take the suppression away first", r.id, why.Reason)
	f.Details = map[string]any{"skipped": why}
	return f
}

// apply gives a message what was planned for it, as the script writes it and answers show it.
func (r row) apply(o reopening, now time.Time) (row, error) {
	r.state, r.due, r.attempts, r.max, r.gateway = stateWaiting, millis(o.due), o.attempts, o.max, o.gateway
	if o.due.After(now) {
		r.state = stateDelayed
	}
	if !o.planned.IsZero() {
		r.planned = millis(o.planned)
	}
	if o.account != "" {
		r.envelope.Account = o.account
	}
	if !o.replay {
		return r, nil
	}
	r.status.Recipients, r.status.Last = slices.Clone(r.status.Recipients), nil
	if len(o.to) > 0 {
		return r.readdress(o.to)
	}
	for _, i := range r.status.having(rcptFailed) {
		r.status.Recipients[i].Status = rcptQueued
	}
	return r, nil
}

// reopenArgs builds what reopen.lua writes of a message that was read as before and is to be as after. A replay is told, which after then
// remembers.
func (b *Outbox) reopenArgs(before row, after *row, o reopening, now time.Time) ([]any, error) {
	urgent := 0
	if o.urgent {
		urgent = 1
	}
	args := []any{
		after.id, millis(now), before.state, before.fence, after.due, after.attempts, after.max, after.gateway, "", after.planned,
		urgent, "", o.account,
	}
	if !o.replay {
		return args, nil
	}
	env, queued := after.envelope, after.status.having(rcptQueued)
	events := telling{account: env.Account, at: now}
	err := events.tell(event.MessageReplayed, event.Replayed{
		Message: env.about(after.id, after.lane, o.gateway, env.addresses(queued)), Attempt: before.attempts,
	}, queued, 0, "")
	if err != nil {
		return nil, err
	}
	after.status = events.remember(after.status)
	if args[8], err = b.jsons.pack(after.id, after.status); err != nil {
		return nil, err
	}
	if len(o.to) > 0 || o.account != "" {
		args[11], err = b.jsons.pack(after.id, env)
	}
	return append(args, events.lines...), err
}

// rewoken queues the task of a message that was given a new time, and drops the one it had.
func (b *Outbox) rewoken(ctx context.Context, p int, r row, o reopening, epoch string) {
	b.mail.reopened(ctx, r.id, o.due, o.replay)
	b.enqueue(ctx, wakeup{id: r.id, lane: string(r.lane), epoch: epoch, due: o.due})
	b.forget(ctx, r.task(p))
}

// reopened shows a message as it was written. It may have gone out since, so it is not read again.
func (b *Outbox) reopened(ctx context.Context, r row) (api.OutboxMessage, error) {
	paused, err := b.pausedLanes(ctx)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	m := r.show(paused[r.lane])
	m.Log = r.status.Log
	return m, nil
}

// wakeup is a task owed to a message.
type wakeup struct {
	id, lane, epoch string
	due             time.Time // zero: now
}

// enqueue queues wake-ups, many in one round trip. Those that fail stay owed, and the sweeper tries again.
func (b *Outbox) enqueue(ctx context.Context, wakeups ...wakeup) {
	if len(wakeups) == 0 {
		return
	}
	now := b.clock.Now()
	tasks := make([]queue.Task, len(wakeups))
	for i, w := range wakeups {
		p, _ := partitionOf(w.id, b.DB.Partitions())
		tasks[i] = queue.Task{
			Queue: laneQueue(api.Lane(w.lane), p), Type: TaskDeliver, ID: taskID(w.id, w.epoch),
		}
		if w.due.After(now) {
			tasks[i].At = w.due
		}
	}
	for i, err := range b.Queue.Enqueue(ctx, tasks...) {
		if err != nil {
			b.log.WarnContext(ctx, "wake-up not queued yet", "message_id", wakeups[i].id, "error", err)
			continue
		}
		if p, ok := partitionOf(wakeups[i].id, b.DB.Partitions()); ok {
			b.queued.note(p, wakeups[i].id)
		}
	}
}
