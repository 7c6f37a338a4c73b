package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// ReplayAll replays every dead letter that the request selects, oldest first, or in the order of its ids.
// Messages that are no longer dead letters, or whose content is gone, count as skipped.
func (d *Operations) ReplayAll(ctx context.Context, req api.ReplayRequest) (api.ReplayAnswer, error) {
	var answer api.ReplayAnswer
	var c api.Corrections
	if req.Corrections != nil {
		var err error
		c, c.Bound = *req.Corrections, req.Bound
		if c, err = d.correct(ctx, c); err != nil {
			return answer, err
		}
	}
	replay := func(entries []entry) error { return d.replayEach(ctx, req, c, entries, &answer) }
	for chunk := range slices.Chunk(req.IDs, scanChunk) {
		if err := replay(entriesOf(chunk)); err != nil {
			return answer, err
		}
	}
	if len(req.IDs) > 0 {
		return answer, nil
	}
	q := api.OutboxQuery{State: api.Failed, Account: req.Account, Tag: req.Tag, PageSize: scanChunk}
	err := d.eachPage(ctx, q, nil, replay)
	return answer, err
}

// replayEach replays the given messages that the request selects, and counts them.
func (d *Operations) replayEach(ctx context.Context, req api.ReplayRequest, c api.Corrections,
	entries []entry, answer *api.ReplayAnswer) error {
	rows, err := d.readRows(ctx, entries)
	if err != nil {
		return redisError(err, "read the dead letters to replay")
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return !selects(req, r) })
	now, pipe := d.clock.Now(), d.DB.Pipeline()
	answers := make([]*redisdb.Reply[woken], len(rows))
	for i, r := range rows {
		if r.state != stateFailed {
			continue
		}
		o, args := replayOf(r, c, now), reopenArgs{}
		err := d.checkReplay(ctx, r, o, req.Bound)
		if err == nil {
			_, args, err = d.reopenArgs(ctx, r, o, now)
		}
		if fault.Is(err, fault.Conflict) || fault.CodeOf(err) == "SenderNotAllowed" {
			continue // all its recipients are suppressed, or the account may not send as its sender any more
		}
		if err != nil {
			return err
		}
		answers[i] = reopenScript.Add(pipe, []string{d.keys.message(r.partition, r.id)}, args)
	}
	if err := pipe.Exec(ctx); err != nil {
		return redisError(err, "replay dead letters")
	}
	var woken []wakeup
	var former []task
	for i, r := range rows {
		epoch := ""
		if answers[i] != nil {
			got, _ := answers[i].Read() // an error would be Exec's
			if epoch = got.Epoch; got.Word == "OVER" {
				answer.OverQuota++
				_ = d.overQuota(ctx, cmp.Or(c.Account, r.envelope.Account), r, got.First) // for the log and the count
			}
		}
		if epoch == "" {
			answer.Skipped++
			continue
		}
		answer.Replayed++
		d.mail.reopened(ctx, r.id, now, true)
		woken = append(woken, wakeup{ID: r.id, Lane: r.lane, Epoch: epoch})
		former = append(former, r.task())
	}
	d.enqueue(ctx, woken...)
	d.forget(ctx, former...)
	return nil
}

// selects reports whether a request selects a dead letter. IDs are not looked at.
func selects(req api.ReplayRequest, r row) bool {
	last := r.status.fault(r.state)
	switch {
	case req.Account != "" && r.envelope.Account != req.Account:
		return false
	case req.Tag != "" && !slices.Contains(r.envelope.Tags, req.Tag):
		return false
	case req.Code != "" && (last == nil || last.Code != req.Code):
		return false
	case req.Reason != "" && r.failedFor() != req.Reason:
		return false
	case req.AccountTrouble && (last == nil || !last.Account):
		return false
	}
	return true
}

// Replay queues a dead letter again, with all its attempts: for the recipients that failed, or for the ones
// that the corrections name instead. To and Cc name the new recipients, and the message is signed again,
// unless it was submitted raw. Replay returns a Conflict if the message is not a dead letter or its content
// is gone, so only one of several concurrent replays succeeds.
func (d *Operations) Replay(ctx context.Context, id string, c api.Corrections) (api.OutboxMessage, error) {
	c, err := d.correct(ctx, c)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	m, err := d.reopen(ctx, id, func(r row, now time.Time) (reopening, error) {
		if r.state != stateFailed {
			return reopening{}, fault.New(fault.Conflict, "MessageNotFailed", "Message %s hasn't failed; "+
				"it is %s",
				id, r.state)
		}
		o := replayOf(r, c, now)
		return o, d.checkReplay(ctx, r, o, c.Bound)
	})
	if past, ok := errors.AsType[*fault.Error](err); ok && past.Code == "MessageFailed" {
		return m, fault.New(fault.Conflict, "ContentGone",
			"Message %s can't be replayed, because its content is no longer stored", id)
	}
	return m, err
}

// DeleteDeadLetter deletes a dead letter. If there is none with this id, nothing is deleted, and there is no
// error.
func (d *Operations) DeleteDeadLetter(ctx context.Context, id string) (api.DeleteAnswer, error) {
	r, err := d.reader.read(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && r.state != stateFailed {
		return api.DeleteAnswer{}, nil
	}
	if err != nil {
		return api.DeleteAnswer{}, err
	}
	return d.Cancel(ctx, id, ReasonAPI)
}

// correct checks corrections. It returns them with normalized addresses, each once.
func (d *Operations) correct(ctx context.Context, c api.Corrections) (api.Corrections, error) {
	if c.Account != "" {
		if _, err := d.Accounts.Resolve(ctx, c.Account); err != nil {
			return c, err
		}
	}
	if c.Gateway != nil && *c.Gateway != "" && !d.confined(c.Bound) { // gateways of the account's list exist
		if err := d.gatewayExists(ctx, *c.Gateway); err != nil {
			return c, err
		}
	}
	var wrong fault.Fields
	addresses := c.To
	c.To = nil
	for i, to := range addresses {
		address, err := message.NormalizeAddress(to)
		if err != nil {
			wrong.Add(fmt.Sprintf("to[%d]", i), "%s", err)
			continue
		}
		if !slices.Contains(c.To, address) {
			c.To = append(c.To, address)
		}
	}
	if len(wrong) > 0 {
		return c, fault.InvalidFields(wrong)
	}
	return c, nil
}

// replayOf returns the replay of a dead letter: due now, with all its attempts again.
func replayOf(r row, c api.Corrections, now time.Time) reopening {
	o := reopening{due: now, max: r.max, gateway: r.gateway, replay: true, to: c.To, account: c.Account,
		answered: !c.Bound && (c.Account != "" || c.Gateway != nil)}
	if c.Gateway != nil {
		o.gateway = *c.Gateway
	}
	return o
}

// checkPatch returns an error if a message may not be sent through the gateway of a patch.
func (d *Operations) checkPatch(ctx context.Context, r row, p api.OutboxPatch) error {
	if !d.confined(p.Bound) {
		if *p.Gateway == "" {
			return nil
		}
		return d.gatewayExists(ctx, *p.Gateway)
	}
	account, err := d.Accounts.Resolve(ctx, r.envelope.Account)
	if err != nil {
		return err
	}
	return d.checkGateway(account, *p.Gateway)
}

// checkReplay returns Forbidden if the account that sends a message from now on may not use its gateway, or
// the senders in its header and envelope. The client that replays a message is responsible for them.
func (d *Operations) checkReplay(ctx context.Context, r row, o reopening, bound bool) error {
	if !d.confined(bound) {
		return nil
	}
	account, err := d.Accounts.Resolve(ctx, cmp.Or(o.account, r.envelope.Account))
	if err != nil {
		return err
	}
	if err := d.checkGateway(account, o.gateway); err != nil {
		return err
	}
	content, err := d.contentOf(ctx, r)
	if err != nil {
		return err
	}
	return d.checkSenders(account, r.envelope.From, content)
}

// readdress queues a failed message for recipients other than the failed ones. Failed recipients that are not
// named again get the status replaced. A recipient that has the message is refused.
func (r row) readdress(to []string) (row, error) {
	known := len(r.envelope.To)
	r.envelope.To = slices.Clone(r.envelope.To)
	r.status.Events = slices.Clone(r.status.Events)
	for i, e := range r.status.Events {
		if e.To == nil { // all recipients so far
			r.status.Events[i].To = everybody(known)
		}
	}
	for _, i := range r.status.having(rcptFailed) {
		r.status.Recipients[i].Status = rcptReplaced
	}
	for n, address := range to {
		i := slices.Index(r.envelope.To[:known], address)
		switch {
		case i < 0:
			r.envelope.To = append(r.envelope.To, address)
			r.envelope.Added++
			r.envelope.UTF8 = r.envelope.UTF8 || !ascii(address)
			r.status.Recipients = append(r.status.Recipients, recipient{Status: rcptQueued})
		case r.status.Recipients[i].Status == rcptSent:
			return r, fault.InvalidField(fmt.Sprintf("to[%d]", n), "already has the message")
		default:
			r.status.Recipients[i].Status = rcptQueued
		}
	}
	return r, nil
}

func ascii(s string) bool { return strings.IndexFunc(s, func(c rune) bool { return c > 127 }) < 0 }
