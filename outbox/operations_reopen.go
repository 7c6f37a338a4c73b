package outbox

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// Retry attempts a message now: a delayed message before its time, a failed one with all its attempts again.
func (d *Operations) Retry(ctx context.Context, id string) (api.OutboxMessage, error) {
	return d.reopen(ctx, id, func(r row, now time.Time) (reopening, error) {
		o := reopening{due: now, attempts: r.attempts, max: r.max, gateway: r.gateway, urgent: true}
		if r.state == stateFailed {
			o.replay, o.attempts = true, 0
		}
		return o, nil
	})
}

// Patch changes the time, the number of attempts or the gateway of a message that is not being sent.
func (d *Operations) Patch(ctx context.Context, id string, p api.OutboxPatch) (api.OutboxMessage, error) {
	return d.reopen(ctx, id, func(r row, now time.Time) (reopening, error) {
		if r.state == stateFailed {
			return reopening{}, fault.New(fault.Conflict, "MessageFailed",
				"Message %s failed permanently; replay it instead", id)
		}
		if p.Gateway != nil {
			if err := d.checkPatch(ctx, r, p); err != nil {
				return reopening{}, err
			}
		}
		o := reopening{due: redisdb.Time(r.due), attempts: r.attempts, max: r.max, gateway: r.gateway}
		if p.SendAt != nil {
			if err := fault.InvalidFields(d.opts.checkAhead(*p.SendAt, now)); err != nil {
				return reopening{}, err
			}
			o.due = p.SendAt.UTC()
			o.planned = o.due
		}
		if p.DeliveryAttempts != nil {
			o.max = *p.DeliveryAttempts
		}
		if o.max <= r.attempts {
			return o, fault.InvalidField("deliveryAttempts", "must be more than the %d attempts made", r.attempts)
		}
		if p.Gateway != nil {
			o.gateway, o.answered = *p.Gateway, !p.Bound
		}
		return o, nil
	})
}

// reopening is a change of a message that is not being sent.
type reopening struct {
	due      time.Time
	planned  time.Time // when the first attempt is due; zero means as before
	attempts int
	max      int
	gateway  string
	urgent   bool     // it is tried even while its account is held
	replay   bool     // a dead letter's replay: its failed recipients are queued again
	to       []string // instead of the failed recipients, if any
	account  string   // the new account; empty means as before
	answered bool     // an unbound token chose the account or the gateway, and answers for the senders
}

// reopen changes a message by a plan, and queues its new task. It returns the message as it was written: it
// may have been sent since, so it is not read again.
func (d *Operations) reopen(ctx context.Context, id string, plan func(row, time.Time) (reopening, error)) (
	api.OutboxMessage, error) {
	var after row
	word, err := d.change(ctx, id, func(r row) (string, error) {
		now := d.clock.Now()
		o, err := plan(r, now)
		if err != nil {
			return "", err
		}
		var args reopenArgs
		if after, args, err = d.reopenArgs(ctx, r, o, now); err != nil {
			return "", err
		}
		answer, err := run(ctx, d.store, reopenScript, r.partition, id, args)
		if answer.Word == "OVER" {
			return "", d.overQuota(ctx, after.envelope.Account, r, answer.First)
		}
		if answer.Word == "OK" {
			d.mail.reopened(ctx, id, o.due, o.replay)
			d.enqueue(ctx, wakeup{ID: id, Lane: r.lane, Epoch: answer.Epoch, Due: o.due})
			d.forget(ctx, r.task())
		}
		return answer.Word, err
	})
	switch {
	case err != nil:
	case word == "OK":
		return d.reader.shown(ctx, after)
	case word == "GONE":
		_, err = d.reader.read(ctx, id)
	case word == "ACTIVE":
		err = messageActive(id)
	case word == "PURGED":
		err = fault.New(fault.Conflict, "ContentGone", "The content of message %s is no longer stored", id)
	default:
		err = messageChanged(id)
	}
	return api.OutboxMessage{}, err
}

// replayable returns a Conflict error if all queued recipients of a dead letter are suppressed: it would end
// without having been sent, and be lost.
func (d *Operations) replayable(ctx context.Context, r row) error {
	queued := r.status.having(rcptQueued)
	stopped, err := d.stops(ctx, r.envelope, r.lane, queued)
	if err != nil || len(stopped) == 0 || len(stopped) < len(queued) {
		return err
	}
	why := skipped(r.envelope, stopped)
	f := fault.New(fault.Conflict, "RecipientSuppressed",
		"All remaining recipients of message %s are suppressed (%s). Correct the recipient, or delete the suppression first",
		r.id, why.Reason)
	f.Details = map[string]any{"skipped": why}
	return f
}

// apply returns the message as a reopening changes it.
func (r row) apply(o reopening, now time.Time) (row, error) {
	r.state, r.due, r.gateway = stateWaiting, redisdb.Millis(o.due), o.gateway
	r.attempts, r.max = o.attempts, o.max
	if o.due.After(now) {
		r.state = stateScheduled
	}
	if !o.planned.IsZero() {
		r.planned = redisdb.Millis(o.planned)
	}
	r.envelope.Account = cmp.Or(o.account, r.envelope.Account)
	r.envelope.Bound = r.envelope.Bound && !o.answered
	if !o.replay {
		return r, nil
	}
	r.status.Recipients, r.status.Last, r.status.Lost = slices.Clone(r.status.Recipients), nil, nil
	if len(o.to) > 0 {
		return r.readdress(o.to)
	}
	for _, i := range r.status.having(rcptFailed) {
		r.status.Recipients[i].Status = rcptQueued
	}
	return r, nil
}

// reopenArgs returns a message as a reopening changes it, and the arguments of reopen.lua. A replay is an
// event.
func (d *Operations) reopenArgs(ctx context.Context, before row, o reopening, now time.Time) (after row,
	args reopenArgs, err error) {
	if after, err = before.apply(o, now); err != nil {
		return after, args, err
	}
	args = reopenArgs{
		ID: after.id, Now: now, State: before.state, Fence: before.fence, Due: after.due, Attempts: after.attempts,
		Max: after.max, Gateway: after.gateway, Scheduled: after.planned, Urgent: o.urgent, Account: o.account,
	}
	if len(o.to) > 0 || o.account != "" || after.envelope.Bound != before.envelope.Bound {
		args.Envelope, err = d.jsons.pack(after.id, &after.envelope)
		args.Addressed, args.KeepAddressed = after.envelope.addressed(), d.opts.keepAddressed()
	}
	if !o.replay || err != nil {
		return after, args, err
	}
	check, err := d.quotaOf(ctx, after.envelope.Account)
	if err != nil {
		return after, args, err
	}
	args.Quotas, args.Partitions = check.args(after.partition)
	if err = d.replayable(ctx, after); err == nil && after.envelope.Campaign != nil && d.MayReplay != nil {
		err = d.MayReplay(ctx, after.id)
	}
	if err != nil {
		return after, args, err
	}
	queued := after.status.having(rcptQueued)
	events := after.envelope.events(now)
	data := event.Replayed{Message: after.about(queued), Attempt: before.attempts}
	err = events.add(event.MessageReplayed, data, queued, 0, "")
	if err != nil {
		return after, args, err
	}
	after.status, args.Event = events.remember(after.status), events.lines[0]
	args.Undone = strings.Join(before.undone(now), "\n")
	args.Status, err = d.jsons.pack(after.id, &after.status)
	return after, args, err
}
