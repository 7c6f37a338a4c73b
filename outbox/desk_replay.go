package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// ReplayAll queues every dead letter again that the request selects, oldest first, or in the order of its
// ids. Those that are no longer dead when their turn comes, or whose content is gone, are counted as skipped.
func (d *Desk) ReplayAll(ctx context.Context, req api.ReplayRequest) (api.ReplayAnswer, error) {
	var answer api.ReplayAnswer
	var k corrected
	if req.Corrections != nil {
		var err error
		if k, err = d.correct(ctx, *req.Corrections); err != nil {
			return answer, err
		}
	}
	if len(req.IDs) > 0 {
		for chunk := range slices.Chunk(req.IDs, scanChunk) {
			if err := d.replayEach(ctx, req, k, entriesOf(chunk), &answer); err != nil {
				return answer, err
			}
		}
		return answer, nil
	}
	q := api.OutboxQuery{State: api.Failed, Account: req.Account, Tag: req.Tag, PageSize: scanChunk}
	for {
		found, err := d.reader.find(ctx, q, nil, scanChunk)
		if err != nil {
			return answer, away(err, "list the dead letters to replay")
		}
		if err := d.replayEach(ctx, req, k, found.page, &answer); err != nil || !found.more {
			return answer, err
		}
		q.Cursor = found.next
	}
}

// replayEach queues those of some messages again that the request selects, a few round trips for all of them,
// and counts them.
func (d *Desk) replayEach(ctx context.Context, req api.ReplayRequest, k corrected, entries []entry,
	answer *api.ReplayAnswer) error {
	rows, err := d.readRows(ctx, entries)
	if err != nil {
		return away(err, "read the dead letters to replay")
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return !selects(req, r) })
	now, pipe := d.clock.Now(), d.DB.Pipeline()
	answers := make([]*redisdb.Reply[woken], len(rows))
	for i, r := range rows {
		if r.state != stateFailed {
			continue
		}
		args, err := d.replayArgs(ctx, r, k.plan(r, now), now)
		if fault.Is(err, fault.Conflict) {
			continue // nobody left in it may be mailed
		}
		if err != nil {
			return err
		}
		p, _ := partitionOf(r.id, d.DB.Partitions())
		answers[i] = reopenScript.Add(pipe, []string{d.keys.message(p, r.id)}, args)
	}
	if err := pipe.Exec(ctx); err != nil {
		return away(err, "replay dead letters")
	}
	var woken []wakeup
	var former []task
	for i, r := range rows {
		epoch := ""
		if answers[i] != nil {
			answer, _ := answers[i].Read() // an error would be Exec's
			epoch = answer.Epoch
		}
		if epoch == "" { // no longer dead, or its content is gone, or see above
			answer.Skipped++
			continue
		}
		answer.Replayed++
		p, _ := partitionOf(r.id, d.DB.Partitions())
		d.mail.reopened(ctx, r.id, now, true)
		woken = append(woken, wakeup{id: r.id, lane: string(r.lane), epoch: epoch})
		former = append(former, r.task(p))
	}
	d.enqueue(ctx, woken...)
	d.forget(ctx, former...)
	return nil
}

// replayArgs builds what reopen.lua writes of a dead letter. One that is left with nobody who may be mailed
// is a fault of kind Conflict.
func (d *Desk) replayArgs(ctx context.Context, r row, o reopening, now time.Time) (reopenArgs, error) {
	after, err := r.apply(o, now)
	if err != nil {
		return reopenArgs{}, err
	}
	if err := d.replayable(ctx, after); err != nil {
		return reopenArgs{}, err
	}
	return d.reopenArgs(r, &after, o, now)
}

// selects says whether a request to replay means this message.
func selects(req api.ReplayRequest, r row) bool {
	last := r.status.Last
	switch {
	case req.Account != "" && r.envelope.Account != req.Account:
		return false
	case req.Tag != "" && !slices.Contains(r.envelope.Tags, req.Tag):
		return false
	case req.Code != "" && (last == nil || last.Code != req.Code):
		return false
	case req.AccountTrouble && (last == nil || !last.Account):
		return false
	}
	return true
}

// Replay queues a dead letter again, for the recipients that failed or those that the corrections name
// instead, with its attempts counted anew. Its content goes out as it is: headers and signature tell of the
// former recipients and account. Of several replays at once one succeeds; the others find the message no
// longer dead, a Conflict. So is a message that failed and whose content is no longer kept.
func (d *Desk) Replay(ctx context.Context, id string, c api.Corrections) (api.OutboxMessage, error) {
	k, err := d.correct(ctx, c)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	m, err := d.reopen(ctx, id, func(r row, now time.Time) (reopening, error) {
		if r.state != stateFailed {
			return reopening{}, fault.New(fault.Conflict, "MessageNotFailed", "Message %s has not failed; it is %s",
				id, r.state)
		}
		return k.plan(r, now), nil
	})
	if past, ok := errors.AsType[*fault.Error](err); ok && past.Code == "MessageFailed" {
		return m, fault.New(fault.Conflict, "ContentGone",
			"Message %s failed, and its content is no longer kept: it can't be sent again", id)
	}
	return m, err
}

// DeleteDeadLetter forgets a dead letter. An unknown one, or a message that has not failed, is not an error:
// nothing is deleted.
func (d *Desk) DeleteDeadLetter(ctx context.Context, id string) (api.DeleteAnswer, error) {
	r, err := d.reader.read(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && r.state != stateFailed {
		return api.DeleteAnswer{}, nil
	}
	if err != nil {
		return api.DeleteAnswer{}, err
	}
	return d.Cancel(ctx, id, ReasonAPI)
}
