package outbox

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// doubt records that the dot is about to be written. Without this record the dot must not be written. If
// replicas are waited for, they need it too: a new master without it would send again without a doubt.
func (d *Delivery) doubt(ctx context.Context, c *claim) error {
	now := d.clock.Now()
	until, err := doubtScript.RunReplicated(ctx, d.DB, []string{d.keys.message(c.partition, c.id)},
		doubtArgs{Now: now, Fence: c.fence})
	if err != nil {
		return err
	}
	if until.IsZero() {
		return lease.ErrLost
	}
	c.until = now.Add(until.Sub(now)) // keeps the monotonic clock of now
	return nil
}

// progress records the result of a transaction if the message needs more of them for its other recipients, so
// that no one gets the message twice after a crash between two transactions.
func (d *Delivery) progress(ctx context.Context, c *claim, done []smtpsend.RecipientResult) error {
	now := d.clock.Now()
	st, sent, response := c.delivered(done)
	if len(sent) == 0 {
		return nil
	}
	about := c.about(sent)
	events := c.envelope.events(now)
	err := events.add(event.MessageSent, event.Sent{
		Message: about, Response: response, Accepted: about.Envelope.To, InDoubt: c.mayBeThere(),
	}, sent, len(st.Log)+1, "")
	if err != nil {
		return err
	}
	st = events.remember(st)
	packed, err := d.jsons.pack(c.id, &st)
	if err != nil {
		return err
	}
	c.transactions++
	args := progressArgs{ID: c.id, Fence: c.fence, Transaction: c.transactions, Status: packed,
		Event: events.lines[0]}
	err = d.persist(ctx, c, func() error {
		ok, err := run(ctx, d.store, progressScript, c.partition, c.id, args)
		if err == nil && !ok {
			err = lease.ErrLost
		}
		return err
	})
	if err != nil {
		return err
	}
	c.status = st
	d.metrics.recipients.WithLabelValues(rcptSent).Add(float64(len(sent)))
	d.mail.sent(ctx, c.id, c.attempts+1, about.Envelope.To, response, d.clock.Now().Sub(c.began))
	return nil
}

// delivered returns the status after a transaction, the recipients that it delivered to, and the relay's
// reply.
func (c *claim) delivered(done []smtpsend.RecipientResult) (st status, sent []int, response string) {
	st = c.status
	st.Recipients = slices.Clone(st.Recipients)
	got := make(map[string]string, len(done))
	for _, r := range done {
		if r.Err == nil {
			got[r.Address] = r.Response
		}
	}
	for _, i := range c.status.having(rcptQueued) {
		if said, ok := got[c.envelope.To[i]]; ok {
			r := &st.Recipients[i]
			r.Status, r.Response, response = rcptSent, said, said
			r.Attempts++
			sent = append(sent, i)
		}
	}
	return st, sent, response
}

// persist repeats a write while Redis is unavailable: a 250 that was read must not be lost.
func (d *Delivery) persist(ctx context.Context, c *claim, write func() error) error {
	return lease.Persist(ctx, d.log, "message "+c.id, recordTimeout, write)
}

// recordTimeout is how long a result waits for Redis before its worker continues with other messages.
const recordTimeout = 10 * time.Minute

// record writes the result of an attempt.
func (d *Delivery) record(ctx context.Context, c *claim, dec decision) queue.Verdict {
	var answer finished
	if dec.waits() || dec.outcome == delayed || dec.outcome == failed {
		d.repack(ctx, c)
	}
	args, err := d.finishArgs(ctx, c, dec)
	if err == nil && d.DB.Together() {
		err = d.queuesFollowers(ctx, c, &args)
	}
	if err == nil {
		var ack *queue.Ack
		if (dec.outcome == sent || dec.outcome == suppressed) && d.DB.Together() {
			ack = queue.Acknowledge(ctx, d.verdict(dec))
		}
		err = d.persist(ctx, c, func() (err error) {
			// before finish.lua: once the message has ended, this is not tried again
			if err = d.reportDead(ctx, c, dec); err == nil {
				answer, err = d.finish(ctx, c, args, ack)
			}
			return err
		})
	}
	if err != nil {
		d.log.ErrorContext(ctx, "attempt not recorded", "message_id", c.id, "error", err)
		return queue.NotNow(d.clock.Now().Add(time.Second))
	}
	if args.Contended {
		d.lines.note(c.partition, args.Line) // finish.lua may have begun it
	}
	return d.recorded(ctx, c, dec, answer)
}

// queuesFollowers has finish.lua queue the tasks of the messages that follow.
func (d *Delivery) queuesFollowers(ctx context.Context, c *claim, args *finishArgs) error {
	f, err := d.Queue.Form(ctx, laneQueue(c.lane, c.partition), TaskDeliver)
	args.Tasks, args.TaskPrefix, args.TaskHead, args.TaskTail = f.Tasks, f.Prefix, f.Head, f.Tail
	args.TaskNow = f.Now
	return err
}

// finish runs finish.lua. asynq's acknowledgement of the task is a part of it, if there is one.
func (d *Delivery) finish(ctx context.Context, c *claim, args finishArgs, ack *queue.Ack) (finished, error) {
	if ack == nil {
		return run(ctx, d.store, finishScript, c.partition, c.id, args)
	}
	keys := append([]string{d.keys.message(c.partition, c.id)}, ack.Keys...)
	args.Acks, args.Events = len(ack.Values), slices.Concat(ack.Values, args.Events)
	answer, err := finishScript.With(ack.Lua).Run(ctx, d.DB.Shared(), keys, args)
	if answer.Acknowledged {
		ack.Written()
	}
	return answer, redisError(err, "finish message "+c.id)
}

// reportDead reports recipients that were given up to the suppressions. An address that does not exist is
// suppressed immediately. A full or unreachable mailbox is suppressed after repeated reports.
func (d *Delivery) reportDead(ctx context.Context, c *claim, dec decision) error {
	if d.Suppressions == nil {
		return nil
	}
	var dead []suppression.Entry
	for _, i := range dec.lost {
		said := dec.why[i].smtp
		if said == nil || said.InDoubt || said.Code == 0 {
			continue
		}
		e := suppression.Entry{
			Address: c.envelope.To[i], Reason: suppression.HardBounce, Account: c.envelope.Account, Source: "smtp",
			MessageID: c.id, Response: said.Line,
		}
		switch {
		case said.Suppress:
			dead = append(dead, d.Suppressions.WithDefaults(e))
		case said.Verdict.AboutAddress() && said.Scope == smtpsend.ScopeRecipient:
			if _, err := d.Suppressions.Soft(ctx, e, d.clock.Now()); err != nil && !fault.Is(err, fault.Invalid) {
				return err
			}
		}
	}
	if len(dead) == 0 {
		return nil
	}
	_, err := d.Suppressions.Add(ctx, dead...)
	if fault.Is(err, fault.Invalid) { // an invalid address gets no mail anyway
		return nil
	}
	return err
}

// finishArgs returns the arguments of finish.lua.
func (d *Delivery) finishArgs(ctx context.Context, c *claim, dec decision) (finishArgs, error) {
	now := d.clock.Now()
	args := finishArgs{ID: c.id, Fence: c.fence, Now: now, Outcome: dec.outcome, Due: dec.due,
		Reason: dec.reason, Hold: dec.hold, Window: cmp.Or(c.window, d.opts.Window), LineDue: now.Add(holdAtMost)}
	if line := dec.line(c); line.scope != "" {
		args.Line, args.Contended = line.String(), d.lines.contended(line)
	}
	if dec.outcome == released || dec.waits() && dec.untried() {
		args.Attempts, args.Lapsed, args.Reservation = c.attempts, c.lapsed, dec.reservation
		if dec.outcome == released {
			args.Due, args.Reservation, args.Reason = now, c.reservation, ""
			return args, nil
		}
		var err error
		st := c.status.waits(dec.at, dec.reason)
		args.Status, err = d.jsons.pack(c.id, &st)
		return args, err
	}
	events, err := dec.events(c)
	if err != nil {
		return args, err
	}
	args.Attempts, args.Attempted, args.InDoubt, args.Events = dec.attempts, !dec.unasked, dec.fresh,
		events.lines
	args.References, args.KeepKey = d.references(ctx, c, dec), d.keepKey()
	st := events.remember(dec.status)
	if dec.waits() {
		st = st.waits(dec.at, dec.reason)
	}
	if result, reason := dec.end(); result != "" {
		kept := d.opts.keeps(c.row, result)
		if kept {
			args.KeepContent = int(math.Ceil(d.opts.KeepContent.Seconds()))
		}
		args.Text = d.textOf(ctx, c, kept)
		args.Record, err = d.ending(c.after(dec), st, result, reason, dec.at)
	} else {
		args.Status, err = d.jsons.pack(c.id, &st)
	}
	if err == nil && len(dec.dialogues) > 0 {
		args.DialogueOf = len(dec.status.Log)
		args.Dialogue, err = packDialogues(d.store, c.id, dec.dialogues)
	}
	return args, err
}

// after is the message after an attempt.
func (c *claim) after(d decision) row {
	r := c.row
	r.attempts, r.status = d.attempts, d.status
	if d.fresh {
		r.doubts++
	}
	return r
}

// references returns the references of a message that a relay accepted (see Lookup), as finish.lua takes
// them. A message to several recipients has one more, under its own id: their hashes (see Addressed.Went).
func (d *Delivery) references(ctx context.Context, c *claim, dec decision) string {
	if d.opts.KeepReferences == 0 || len(dec.sent) == 0 ||
		d.opts.ReportedBy != nil && !d.opts.ReportedBy(ctx, dec.gateway) {
		return ""
	}
	var names []string
	if _, _, ours := MessageOf(c.envelope.MessageID); !ours {
		names = append(names, referenceHash(c.envelope.MessageID))
	}
	for _, reference := range dec.known {
		if hash := referenceHash(reference); !slices.Contains(names, hash) {
			names = append(names, hash)
		}
	}
	var out []string
	if len(names) > 0 {
		proof, stay := d.proof(c.id, c.envelope.Account, c.envelope.To), int(d.opts.KeepReferences.Seconds())
		for _, name := range names {
			out = append(out, fmt.Sprintf("%s %s %d", name, proof, stay))
		}
	}
	if len(c.envelope.To) > 1 {
		out = append(out, fmt.Sprintf("%s %s %d", referenceHash(c.id), recipientHashes(c.id, c.envelope),
			int(recipientsStay.Seconds())))
	}
	return strings.Join(out, " ")
}

// recorded logs and counts a recorded decision, and returns the verdict for the queue.
func (d *Delivery) recorded(ctx context.Context, c *claim, dec decision, answer finished) queue.Verdict {
	if answer.Word == "LOST" {
		d.log.WarnContext(ctx, "attempt came too late", "message_id", c.id, "outcome", dec.outcome, "state",
			answer.State)
		d.metrics.attempts.WithLabelValues("late").Inc()
		return queue.Drop()
	}
	d.lines.note(c.partition, dec.hold)
	d.learned(ctx, c, &dec)
	d.enqueue(ctx, answer.wakeups(c.lane)...)
	return d.verdict(dec)
}

// verdict returns the queue's verdict for a decision.
func (d *Delivery) verdict(dec decision) queue.Verdict {
	switch dec.outcome {
	case sent:
		return queue.Done()
	case suppressed:
		return queue.Drop() // it is not a completed job
	case failed, dropped:
		return queue.Bury(dec.summary())
	case released:
		return queue.NotNow(d.clock.Now().Add(time.Second))
	case deferred, held:
		return queue.NotNow(dec.due)
	default:
		return queue.RetryAt(dec.due, dec.summary())
	}
}

// events returns the decision's events. Their gateway is the last relay asked.
func (d *decision) events(c *claim) (changeEvents, error) {
	events := c.envelope.events(d.at)
	add := func(t event.Type, data any, which []int) error {
		return events.add(t, data, which, len(d.status.Log), "")
	}
	about := func(which []int) event.Message {
		m := c.envelope.about(c.id, c.lane, d.gateway, c.envelope.addresses(which))
		m.LocalAddress = d.address
		return m
	}
	if len(d.sent) > 0 {
		m := about(d.sent)
		if err := add(event.MessageSent, event.Sent{Message: m, Response: d.response, Accepted: m.Envelope.To,
			InDoubt: c.mayBeThere(), ProviderMessageID: d.providerID()}, d.sent); err != nil {
			return events, err
		}
	}
	if len(d.stopped) > 0 {
		if err := events.suppressed(c.after(*d), d.stopped); err != nil {
			return events, err
		}
	}
	if len(d.lost) > 0 {
		f := event.Failed{Message: about(d.lost), Failure: d.failure(d.lost), Job: d.job(c, time.Time{}),
			Recipients: d.recipients(c, d.lost)}
		f.InDoubt = f.InDoubt || c.mayBeThere() // the final event: an earlier attempt may have delivered
		if d.outcome == failed {
			f.DeadLetter = c.id
		}
		if err := add(event.MessageFailed, f, d.lost); err != nil {
			return events, err
		}
	}
	if d.outcome == delayed {
		e := event.DeliveryError{Message: about(d.left), Failure: d.failure(d.left), Job: d.job(c, d.due)}
		if err := add(event.MessageDeliveryError, e, d.left); err != nil {
			return events, err
		}
	}
	return events, nil
}

// failure is the failure of recipients in an event.
func (d *decision) failure(which []int) event.Failure {
	r := d.last(which)
	f := event.Failure{Error: r.Message, ErrorCode: r.Code, InDoubt: d.doubt}
	if r.smtp != nil {
		f.SMTPCommand, f.Verdict = r.smtp.Command, string(r.smtp.Verdict)
		if r.SMTP != 0 {
			f.SMTPResponse, f.SMTPResponseCode = r.smtp.Line, &r.SMTP
		}
	}
	return f
}

func (d *decision) job(c *claim, next time.Time) event.Job {
	j := event.Job{ID: c.id, AttemptsMade: d.attempts, Attempts: c.max}
	if !next.IsZero() {
		next = next.UTC()
		j.NextAttempt = &next
	}
	return j
}

// providerID is the provider's id of the message, if all recipients newly sent have the same one.
func (d *decision) providerID() string {
	id := d.status.Recipients[d.sent[0]].ID
	for _, i := range d.sent {
		if d.status.Recipients[i].ID != id {
			return ""
		}
	}
	return id
}

// recipients are the results of recipients in an event.
func (d *decision) recipients(c *claim, which []int) []event.Recipient {
	out := make([]event.Recipient, len(which))
	for n, i := range which {
		r := d.status.Recipients[i]
		out[n] = event.Recipient{Address: c.envelope.To[i], Status: r.Status, Response: r.Response,
			Attempts: r.Attempts, ProviderMessageID: r.ID}
	}
	return out
}
