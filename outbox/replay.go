package outbox

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// ReplayAll queues every dead letter again that the request selects, oldest first, or in the order of its ids. Those that are no longer
// dead when their turn comes, or whose content is gone, are counted as skipped.
func (b *Outbox) ReplayAll(ctx context.Context, req api.ReplayRequest) (api.ReplayAnswer, error) {
	var answer api.ReplayAnswer
	if err := b.correct(ctx, &reopening{}, correctionsOf(req)); err != nil {
		return answer, err
	}
	if len(req.IDs) > 0 {
		for chunk := range slices.Chunk(req.IDs, scanChunk) {
			entries := make([]entry, len(chunk))
			for i, id := range chunk {
				entries[i].id = id
			}
			if err := b.replayEach(ctx, req, entries, &answer); err != nil {
				return answer, err
			}
		}
		return answer, nil
	}
	q := api.OutboxQuery{State: api.Failed, Account: req.Account, Tag: req.Tag, PageSize: scanChunk}
	for {
		found, err := b.find(ctx, q, nil)
		if err != nil {
			return answer, away(err, "list the dead letters to replay")
		}
		if err := b.replayEach(ctx, req, found.page, &answer); err != nil || !found.more {
			return answer, err
		}
		q.Cursor = found.next
	}
}

// replayEach queues those of some messages again that the request selects, and counts them.
func (b *Outbox) replayEach(ctx context.Context, req api.ReplayRequest, entries []entry, answer *api.ReplayAnswer) error {
	rows, err := b.readRows(ctx, entries)
	if err != nil {
		return away(err, "read the dead letters to replay")
	}
	corrections := correctionsOf(req)
	for _, r := range rows {
		if !selects(req, r) {
			continue
		}
		_, err := b.Replay(ctx, r.id, corrections)
		switch {
		case err == nil:
			answer.Replayed++
		case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
			answer.Skipped++
		default:
			return err
		}
	}
	return nil
}

func correctionsOf(req api.ReplayRequest) api.Corrections {
	if req.Corrections == nil {
		return api.Corrections{}
	}
	return *req.Corrections
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
