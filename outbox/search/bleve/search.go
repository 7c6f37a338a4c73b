package bleve

import (
	"context"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"

	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
)

// search returns the result of a search in the current index.
func (e *engine) search(ctx context.Context, s search.Query) (search.Found, error) {
	if err := ctx.Err(); err != nil {
		return search.Found{}, err
	}
	snapshot, err := e.snapshot()
	if err != nil {
		return search.Found{}, err
	}
	defer snapshot.Close()
	found, err := e.match(ctx, snapshot, s)
	if err != nil {
		return search.Found{}, err
	}
	answer := search.Found{}
	for _, f := range found {
		answer.Total += int(f.numbers.GetCardinality())
	}
	if s.Facets {
		if answer.Facets, err = facets(ctx, found); err != nil {
			return search.Found{}, err
		}
	}
	if s.Size > 0 {
		answer.Hits, err = page(ctx, found, s)
	}
	return answer, err
}

// part is the matches in one segment.
type part struct {
	segment *scorch.SegmentSnapshot
	numbers *roaring.Bitmap
	column  []int64
	scores  map[uint32]float64 // nil for newest first
}

// match searches every segment. Segments without matches are omitted.
func (e *engine) match(ctx context.Context, snapshot *scorch.IndexSnapshot, s search.Query) ([]part,
	error) {
	n := s.Where
	if n == nil {
		n = query.All{}
	}
	if s.Account != "" {
		n = query.Both(query.Term{Field: query.Account, Value: s.Account}, n)
	}
	segments := snapshot.Segments()
	defer e.columns.keep(segments)
	var found []part
	for _, segment := range segments {
		column, err := e.columns.of(ctx, segment)
		if err != nil {
			return nil, err
		}
		m := matcher{ctx: ctx, segment: segment, column: column}
		numbers, err := m.match(n)
		if err != nil {
			return nil, err
		}
		if !numbers.IsEmpty() {
			found = append(found, part{segment: segment, numbers: numbers, column: column})
		}
	}
	if s.Relevance {
		return found, score(ctx, snapshot, found, n)
	}
	return found, nil
}

// facets counts the values of the matches, by intersecting the bitmap of each value with the matches.
func facets(ctx context.Context, found []part) (map[query.Field][]search.Count, error) {
	all := make(map[query.Field][]search.Count)
	for _, field := range search.FacetFields() {
		counts := map[string]int{}
		for _, f := range found {
			values, err := newTerms(f.segment, string(field))
			if err != nil {
				return nil, err
			}
			err = values.each(ctx, "", func(value string, with numbers) error {
				if n := with.in(f.numbers); n > 0 {
					counts[value] += n
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		all[field] = mostFrequent(counts)
	}
	return all, nil
}

func mostFrequent(counts map[string]int) []search.Count {
	sorted := make([]search.Count, 0, len(counts))
	for value, n := range counts {
		sorted = append(sorted, search.Count{Value: value, Count: n})
	}
	slices.SortFunc(sorted, func(a, b search.Count) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Value, b.Value)
	})
	return sorted[:min(len(sorted), search.MaxFacets)]
}
