package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// ReplayAll queues every dead letter again that the request selects, oldest first, or in the order of its ids. Those that are no longer
// dead when their turn comes, or whose content is gone, are counted as skipped.
func (b *Outbox) ReplayAll(ctx context.Context, req api.ReplayRequest) (api.ReplayAnswer, error) {
	var answer api.ReplayAnswer
	var k corrected
	if req.Corrections != nil {
		var err error
		if k, err = b.correct(ctx, *req.Corrections); err != nil {
			return answer, err
		}
	}
	if len(req.IDs) > 0 {
		for chunk := range slices.Chunk(req.IDs, scanChunk) {
			if err := b.replayEach(ctx, req, k, entriesOf(chunk), &answer); err != nil {
				return answer, err
			}
		}
		return answer, nil
	}
	q := api.OutboxQuery{State: api.Failed, Account: req.Account, Tag: req.Tag, PageSize: scanChunk}
	for {
		found, err := b.find(ctx, q, nil, scanChunk)
		if err != nil {
			return answer, away(err, "list the dead letters to replay")
		}
		if err := b.replayEach(ctx, req, k, found.page, &answer); err != nil || !found.more {
			return answer, err
		}
		q.Cursor = found.next
	}
}

// replayEach queues those of some messages again that the request selects, a few round trips for all of them, and counts them.
func (b *Outbox) replayEach(ctx context.Context, req api.ReplayRequest, k corrected, entries []entry, answer *api.ReplayAnswer) error {
	rows, err := b.readRows(ctx, entries)
	if err != nil {
		return away(err, "read the dead letters to replay")
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return !selects(req, r) })
	now, pipe := b.clock.Now(), b.DB.Pipeline()
	answers := make([]*redis.Cmd, len(rows))
	for i, r := range rows {
		if r.state != stateFailed {
			continue
		}
		args, err := b.replayArgs(ctx, r, k.plan(r, now), now)
		if fault.Is(err, fault.Conflict) {
			continue // nobody left in it may be mailed
		}
		if err != nil {
			return err
		}
		p, _ := partitionOf(r.id, b.DB.Partitions())
		answers[i] = pipe.Script(reopenScript, []string{b.store.message(p, r.id)}, args...)
	}
	if err := pipe.Exec(ctx); err != nil {
		return away(err, "replay dead letters")
	}
	var woken []wakeup
	var former []task
	for i, r := range rows {
		epoch := ""
		if answers[i] != nil {
			said, _ := answers[i].StringSlice() // an error would be Exec's
			if said[0] == "OK" {
				epoch = said[1]
			}
		}
		if epoch == "" { // no longer dead, or its content is gone, or see above
			answer.Skipped++
			continue
		}
		answer.Replayed++
		p, _ := partitionOf(r.id, b.DB.Partitions())
		b.mail.reopened(ctx, r.id, now, true)
		woken = append(woken, wakeup{id: r.id, lane: string(r.lane), epoch: epoch})
		former = append(former, r.task(p))
	}
	b.enqueue(ctx, woken...)
	b.forget(ctx, former...)
	return nil
}

// replayArgs builds what reopen.lua writes of a dead letter. One that is left with nobody who may be mailed is a fault of kind Conflict.
func (b *Outbox) replayArgs(ctx context.Context, r row, o reopening, now time.Time) ([]any, error) {
	after, err := r.apply(o, now)
	if err != nil {
		return nil, err
	}
	if err := b.replayable(ctx, after); err != nil {
		return nil, err
	}
	return b.reopenArgs(r, &after, o, now)
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
