package outbox

import (
	"cmp"
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// shownAccounts is how many accounts of the dead letters of a reason are named.
const shownAccounts = 20

// DeadLetterReasons counts the dead letters that a query selects by the reason of their explanation. All of
// them are read. State, page and cursor of the query are ignored.
func (rd *Reader) DeadLetterReasons(ctx context.Context, q api.OutboxQuery) (api.DeadLetterReasons, error) {
	out := api.DeadLetterReasons{Reasons: []api.DeadLetterReason{}}
	q.State, q.Page, q.PageSize, q.Cursor = api.Failed, 0, scanChunk, ""
	for more := rd.opts.KeepDeadLetters >= 0; more; {
		found, err := rd.find(ctx, q, nil, scanChunk)
		if fault.Is(err, fault.Invalid) {
			return out, err
		}
		if err != nil {
			return out, redisError(err, "count the dead letters")
		}
		rows, err := rd.readRows(ctx, found.page)
		if err != nil {
			return out, redisError(err, "read the dead letters to count")
		}
		for _, r := range rows {
			if r.state == stateFailed {
				out.Total++
				out.Reasons = count(out.Reasons, r)
			}
		}
		q.Cursor, more = found.next, found.more
	}
	slices.SortStableFunc(out.Reasons, func(a, b api.DeadLetterReason) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Reason, b.Reason))
	})
	return out, nil
}

// count adds a dead letter to the reasons.
func count(reasons []api.DeadLetterReason, r row) []api.DeadLetterReason {
	last := r.status.fault(r.state)
	e := last.explained()
	i := slices.IndexFunc(reasons, func(one api.DeadLetterReason) bool { return one.Reason == e.Reason })
	if i < 0 {
		i = len(reasons)
		reasons = append(reasons, api.DeadLetterReason{Explanation: e, QueueID: r.id})
		if last != nil {
			reasons[i].Example = last.Message
		}
	}
	one := &reasons[i]
	one.Count++
	if len(one.Accounts) < shownAccounts && !slices.Contains(one.Accounts, r.envelope.Account) {
		one.Accounts = append(one.Accounts, r.envelope.Account)
	}
	return reasons
}
