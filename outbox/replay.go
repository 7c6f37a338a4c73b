package outbox

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// ReplayAll queues every dead letter again that the request selects, oldest first. Those that are no longer dead when their turn comes,
// or whose content is gone, are counted as skipped.
func (b *Outbox) ReplayAll(ctx context.Context, req api.ReplayRequest) (api.ReplayAnswer, error) {
	var answer api.ReplayAnswer
	q := api.OutboxQuery{State: api.Failed, Account: req.Account, Tag: req.Tag, PageSize: scanChunk}
	for {
		found, err := b.find(ctx, q, nil)
		if err != nil {
			return answer, away(err, "list the dead letters to replay")
		}
		rows, err := b.readRows(ctx, found.page)
		if err != nil {
			return answer, away(err, "read the dead letters to replay")
		}
		for _, r := range rows {
			if !selects(req, r) {
				continue
			}
			_, err := b.Replay(ctx, r.id)
			switch {
			case err == nil:
				answer.Replayed++
			case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
				answer.Skipped++
			default:
				return answer, err
			}
		}
		if !found.more {
			return answer, nil
		}
		q.Cursor = found.page[len(found.page)-1].cursor()
	}
}

// selects says whether a request to replay means this dead letter. Account and tag were seen to by the search.
func selects(req api.ReplayRequest, r row) bool {
	last := r.status.Last
	switch {
	case len(req.IDs) > 0 && !slices.Contains(req.IDs, r.id):
		return false
	case req.Code != "" && (last == nil || last.Code != req.Code):
		return false
	case req.AccountTrouble && (last == nil || !last.Account):
		return false
	}
	return true
}
