package server

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
)

func TestSearchAsksForWhatTheTokenMaySee(t *testing.T) {
	t.Parallel()
	w := setup(t)
	hit := search.Hit{Document: search.Document{QueueID: "q1", Account: "acme", Subject: "The invoice",
		To: []string{"ann@example.com"}, Status: api.StatusSent, Lane: api.Transactional,
		Created: time.Unix(1, 0).UTC()}}
	w.parts.index.found = search.Found{Total: 200, Hits: slices.Repeat([]search.Hit{hit}, 51)}
	q := api.DocumentQuery{Q: `invoice OR "for you"`, Page: 2, PageSize: 50, Sort: api.SortRelevance}
	page, err := api.SearchDocuments.Do(t.Context(), w.client, q)
	if err != nil || page.Total != 200 || page.Cursor == "" || page.Facets.Status == nil ||
		!slices.Contains(page.Documents[0].Highlights.Subject, api.Fragment{Text: "invoice", Match: true}) {
		t.Errorf("%+v, %v", page, err)
	}
	q.Page, q.Cursor = 0, page.Cursor
	if _, err := api.SearchDocuments.Do(t.Context(), w.client, q); err != nil {
		t.Error(err)
	}
	if _, err := api.SearchDocuments.Do(t.Context(), w.as(boundToken), api.DocumentQuery{
		Q: "account:other"}); err != nil {
		t.Error(err)
	}
	parse := func(q string) query.Node {
		n, err := query.Parse(q, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	after := hit.Position()
	want := []search.Query{
		{Where: parse(q.Q), Relevance: true, Skip: 100, Size: 51, Facets: true},
		{Where: parse(q.Q), Relevance: true, After: &after, Size: 51, Facets: true},
		{Where: parse("account:other"), Account: "acme", Size: 21, Facets: true},
	}
	if diff := cmp.Diff(want, w.parts.index.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSearchIndexIsTheInstances(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b, err := api.RebuildDocuments.Do(t.Context(), w.client)
	if err != nil || b.Status != "wanted" {
		t.Errorf("%+v, %v", b, err)
	}
	s, err := api.GetDocuments.Do(t.Context(), w.client)
	if err != nil || s.Store != "opensearch" || s.Rebuild == nil || s.Rebuild.Status != "wanted" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := api.GetDocuments.Do(t.Context(), w.as(boundToken)); !refused(err, 403) {
		t.Errorf("a bound token sees the state of the index: %v", err)
	}
	if _, err := api.RebuildDocuments.Do(t.Context(), w.as(boundToken)); !refused(err, 403) {
		t.Errorf("a bound token rebuilds the index: %v", err)
	}
}

func TestSearchTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := api.SearchDocuments.Do(t.Context(), w.client, api.DocumentQuery{Q: "x:1"})
	if !refused(err, 400) {
		t.Errorf("a wrong query: %v", err)
	}
}
