package search

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/search/query"
)

// MaxMatch is the maximum number of ids of one [Documents.Match].
const MaxMatch = MaxPageSize / 2

// Match returns which of at most MaxMatch messages, by queue id, match a query. It returns the same errors as
// Search.
func (d *Documents) Match(ctx context.Context, q string, ids []string) (map[string]bool, error) {
	if len(ids) > MaxMatch {
		return nil, fault.New(fault.Internal, "", "match %d messages: %d is the most", len(ids), MaxMatch)
	}
	// Other ids are in the same field. The double page size keeps a foreign Message-ID that equals a queue id
	// from hiding a message.
	s, err := d.question(api.DocumentQuery{Q: q, PageSize: MaxPageSize})
	if err != nil {
		return nil, err
	}
	if err := d.Reachable(ctx); err != nil || len(ids) == 0 {
		return nil, err
	}
	among := make(query.Or, len(ids))
	for i, id := range ids {
		among[i] = query.Term{Field: query.ID, Value: query.FoldID(id)}
	}
	s.Where, s.Facets = query.Both(s.Where, among), false
	found, err := d.ask(ctx, s)
	if err != nil {
		return nil, err
	}
	matched := make(map[string]bool, len(found.Hits))
	for _, h := range found.Hits {
		matched[h.QueueID] = true
	}
	return matched, nil
}
