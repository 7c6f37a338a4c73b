package opensearch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
)

// result is the response to a search.
type result struct {
	TimedOut bool `json:"timed_out"`
	Hits     struct {
		Total struct {
			Value int `json:"value"`
		} `json:"total"`
		Hits []struct {
			Source stored `json:"_source"`
			Sort   []any  `json:"sort"`
		} `json:"hits"`
	} `json:"hits"`
	Aggregations map[string]struct {
		Buckets []struct {
			Key   string `json:"key"`
			Count int    `json:"doc_count"`
		} `json:"buckets"`
	} `json:"aggregations"`
}

// Search implements search.Index.
func (s *Store) Search(ctx context.Context, q search.Query) (search.Found, error) {
	var got result
	if err := s.do(ctx, http.MethodPost, "/"+s.alias+"/_search", question(ctx, q), &got); err != nil {
		return search.Found{}, err
	}
	if got.TimedOut {
		return search.Found{}, fmt.Errorf("the search cluster took too long: %w", context.DeadlineExceeded)
	}
	found := search.Found{Total: got.Hits.Total.Value}
	for _, h := range got.Hits.Hits {
		hit := search.Hit{Document: h.Source.Source}
		if q.Relevance && len(h.Sort) > 0 {
			hit.Score, _ = h.Sort[0].(float64)
		}
		found.Hits = append(found.Hits, hit)
	}
	if q.Facets {
		found.Facets = make(map[query.Field][]search.Count)
		for _, field := range search.FacetFields() {
			for _, b := range got.Aggregations[string(field)].Buckets {
				found.Facets[field] = append(found.Facets[field], search.Count{Value: b.Key, Count: b.Count})
			}
		}
	}
	return found, nil
}

// question returns the body of a search.
func question(ctx context.Context, q search.Query) map[string]any {
	body := map[string]any{
		"query": narrowed(q), "size": q.Size, "track_total_hits": true, "_source": []string{fieldSource},
		"sort": order(q.Relevance),
	}
	if q.Skip > 0 {
		body["from"] = q.Skip
	}
	if q.After != nil {
		after := []any{q.After.Created, q.After.ID}
		if q.Relevance {
			after = append([]any{q.After.Score}, after...)
		}
		body["search_after"] = after
	}
	if deadline, ok := ctx.Deadline(); ok {
		body["timeout"] = strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 1), 10) + "ms"
	}
	if q.Facets {
		aggs := map[string]any{}
		for _, field := range search.FacetFields() {
			aggs[string(field)] = map[string]any{"terms": map[string]any{
				"field": field, "size": search.MaxFacets, "order": []any{map[string]any{"_count": "desc"},
					map[string]any{"_key": "asc"}},
			}}
		}
		body["aggs"] = aggs
	}
	return body
}

// narrowed returns the query, limited to the caller's account.
func narrowed(q search.Query) map[string]any {
	n := q.Where
	if n == nil {
		n = query.All{}
	}
	asked := dsl(n)
	if q.Account == "" {
		return asked
	}
	own := map[string]any{"term": map[string]any{string(query.Account): map[string]any{"value": q.Account}}}
	return map[string]any{"bool": map[string]any{"filter": []any{own}, "must": []any{asked}}}
}

// order returns the sort order.
func order(relevance bool) []any {
	order := []any{map[string]any{fieldAt: "desc"}, map[string]any{fieldOrder: "desc"}}
	if relevance {
		order = append([]any{map[string]any{"_score": "desc"}}, order...)
	}
	return order
}

// Walk implements search.Index.
func (s *Store) Walk(ctx context.Context, fn func([]search.Document) error) error {
	if err := s.refresh(ctx, s.alias); err != nil {
		return err
	}
	after := ""
	for {
		body := map[string]any{
			"query": dsl(query.All{}), "size": batchSize, "track_total_hits": false, "_source": []string{fieldSource},
			"sort": []any{map[string]any{fieldOrder: "asc"}},
		}
		if after != "" {
			body["search_after"] = []any{after}
		}
		var got result
		if err := s.do(ctx, http.MethodPost, "/"+s.alias+"/_search", body, &got); err != nil {
			return err
		}
		docs := make([]search.Document, len(got.Hits.Hits))
		for i, h := range got.Hits.Hits {
			docs[i] = h.Source.Source
		}
		if len(docs) == 0 {
			return nil
		}
		after = docs[len(docs)-1].QueueID
		if err := fn(docs); err != nil {
			return err
		}
	}
}

func (s *Store) refresh(ctx context.Context, index string) error {
	return s.do(ctx, http.MethodPost, "/"+index+"/_refresh", nil, nil)
}

// Forget implements search.Index.
func (s *Store) Forget(ctx context.Context, before time.Time, max int) (int, error) {
	return s.delete(ctx, dsl(query.Created{Until: before}), max)
}

// Delete implements search.Index.
func (s *Store) Delete(ctx context.Context, ids []string) error {
	for some := range slices.Chunk(ids, batchSize) {
		_, err := s.delete(ctx, map[string]any{"ids": map[string]any{"values": some}}, len(some))
		if err != nil {
			return err
		}
	}
	return nil
}

// Reclaim implements search.Index. It does nothing: when the files of the cluster are merged is the matter
// of whoever runs it.
func (s *Store) Reclaim(context.Context) error { return nil }

// delete deletes documents that a query finds, max at most, and returns their number.
func (s *Store) delete(ctx context.Context, which any, max int) (int, error) {
	gone, err := s.deleteFrom(ctx, s.alias, which, max)
	if err != nil {
		return gone, err
	}
	if besides, err := s.isBuilding(ctx); err != nil || !besides {
		return gone, err
	}
	if _, err := s.deleteFrom(ctx, s.building(), which, max); err != nil && !isMissing(err) {
		return gone, err
	}
	return gone, nil
}

func (s *Store) deleteFrom(ctx context.Context, index string, which any, max int) (int, error) {
	var answer struct {
		Deleted  int   `json:"deleted"`
		Failures []any `json:"failures"`
	}
	if err := s.do(ctx, http.MethodPost, "/"+index+"/_delete_by_query?conflicts=proceed&refresh=true",
		map[string]any{"query": which, "max_docs": max}, &answer); err != nil {
		return 0, err
	}
	if len(answer.Failures) > 0 {
		return answer.Deleted, errors.New("the search cluster could not delete all documents")
	}
	return answer.Deleted, nil
}

// Size implements search.Index.
func (s *Store) Size(ctx context.Context) (search.Size, error) {
	var answer struct {
		All struct {
			Primaries struct {
				Docs struct {
					Count int `json:"count"`
				} `json:"docs"`
				Store struct {
					Bytes int64 `json:"size_in_bytes"`
				} `json:"store"`
			} `json:"primaries"`
		} `json:"_all"`
	}
	err := s.do(ctx, http.MethodGet, "/"+s.alias+"/_stats/docs,store", nil, &answer)
	p := answer.All.Primaries
	return search.Size{Documents: p.Docs.Count, Bytes: p.Store.Bytes}, err
}
