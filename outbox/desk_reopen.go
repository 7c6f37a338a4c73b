package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
)

// Retry attempts a message now: a delayed one before its time, a failed one again from the start with its
// attempts counted anew.
func (d *Desk) Retry(ctx context.Context, id string) (api.OutboxMessage, error) {
	return d.reopen(ctx, id, func(r row, now time.Time) (reopening, error) {
		o := reopening{due: now, attempts: r.attempts, max: r.max, gateway: r.gateway, urgent: true}
		if r.state == stateFailed {
			o.replay, o.attempts = true, 0
		}
		return o, nil
	})
}

// Patch changes when, how often or through which gateway a message that is not being sent will be tried.
func (d *Desk) Patch(ctx context.Context, id string, p api.OutboxPatch) (api.OutboxMessage, error) {
	if p.Gateway != nil && *p.Gateway != "" {
		if err := d.gatewayExists(ctx, *p.Gateway); err != nil {
			return api.OutboxMessage{}, err
		}
	}
	return d.reopen(ctx, id, func(r row, now time.Time) (reopening, error) {
		if r.state == stateFailed {
			return reopening{}, fault.New(fault.Conflict, "MessageFailed",
				"Message %s failed for good; retry it instead", id)
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
			return o, fault.InvalidFields([]fault.Field{
				{Key: "deliveryAttempts", Message: fmt.Sprintf("must be more than the %d attempts made", r.attempts)}})
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
func (d *Desk) reopen(ctx context.Context, id string, plan func(row, time.Time) (reopening, error)) (
	api.OutboxMessage, error) {
	p, err := d.place(id)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	if err := d.clock.ready(ctx, d.DB.Client()); err != nil {
		return api.OutboxMessage{}, away(err, "reopen message "+id)
	}
	for range changedTries {
		r, err := d.reader.read(ctx, id)
		if err != nil {
			return api.OutboxMessage{}, err
		}
		now := d.clock.Now()
		o, err := plan(r, now)
		if err != nil {
			return api.OutboxMessage{}, err
		}
		after, err := r.apply(o, now)
		if err != nil {
			return api.OutboxMessage{}, err
		}
		if o.replay {
			err = d.replayable(ctx, after)
		}
		var args reopenArgs
		if err == nil {
			args, err = d.reopenArgs(r, &after, o, now)
		}
		if err != nil {
			return api.OutboxMessage{}, err
		}
		answer, err := run(ctx, d.store, reopenScript, p, id, args)
		if err != nil {
			return api.OutboxMessage{}, err
		}
		switch answer.Word {
		case "OK":
			d.rewoken(ctx, p, r, o, answer.Epoch)
			return d.reopened(ctx, after)
		case "ACTIVE":
			return api.OutboxMessage{}, fault.New(fault.Conflict, "MessageActive",
				"Message %s is being sent at this moment", id)
		case "PURGED":
			return api.OutboxMessage{}, fault.New(fault.Conflict, "ContentGone",
				"The content of message %s is no longer kept", id)
		}
	}
	return api.OutboxMessage{}, fault.New(fault.Conflict, "MessageChanged",
		"Message %s keeps changing; try again", id)
}

// replayable refuses to send a dead letter again to nobody but recipients who must not be mailed: it would
// end without having been sent, and be lost.
func (d *Desk) replayable(ctx context.Context, r row) error {
	queued := r.status.having(rcptQueued)
	stopped, err := d.stops(ctx, r.envelope, r.lane, queued)
	if err != nil || len(stopped) == 0 || len(stopped) < len(queued) {
		return err
	}
	why := skipped(r.envelope, stopped)
	f := fault.New(fault.Conflict, "RecipientSuppressed",
		"Nobody left in message %s may be mailed (%s): correct the recipient, or take the suppression away first",
		r.id, why.Reason)
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

// reopenArgs builds what reopen.lua writes of a message that was read as before and is to be as after. A
// replay is told, which after then remembers.
func (d *Desk) reopenArgs(before row, after *row, o reopening, now time.Time) (reopenArgs, error) {
	args := reopenArgs{
		ID: after.id, Now: now, State: before.state, Fence: before.fence, Due: after.due, Attempts: after.attempts,
		Max: after.max, Gateway: after.gateway, Scheduled: after.planned, Urgent: o.urgent, Account: o.account,
	}
	if !o.replay {
		return args, nil
	}
	env, queued := after.envelope, after.status.having(rcptQueued)
	events := changeEvents{account: env.Account, at: now}
	err := events.add(event.MessageReplayed, event.Replayed{
		Message: env.about(after.id, after.lane, o.gateway, env.addresses(queued)), Attempt: before.attempts,
	}, queued, 0, "")
	if err != nil {
		return args, err
	}
	after.status, args.Events = events.remember(after.status), events.lines
	if args.Status, err = d.jsons.pack(after.id, after.status); err != nil {
		return args, err
	}
	if len(o.to) > 0 || o.account != "" {
		args.Envelope, err = d.jsons.pack(after.id, env)
	}
	return args, err
}

// rewoken queues the task of a message that was given a new time, and drops the one it had.
func (d *Desk) rewoken(ctx context.Context, p int, r row, o reopening, epoch string) {
	d.mail.reopened(ctx, r.id, o.due, o.replay)
	d.enqueue(ctx, wakeup{id: r.id, lane: string(r.lane), epoch: epoch, due: o.due})
	d.forget(ctx, r.task(p))
}

// reopened shows a message as it was written. It may have gone out since, so it is not read again.
func (d *Desk) reopened(ctx context.Context, r row) (api.OutboxMessage, error) {
	paused, err := d.pausedLanes(ctx)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	m := r.show(paused[r.lane])
	m.Log = r.status.Log
	return m, nil
}
