package server

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// fakeDocuments answers for the search index.
type fakeDocuments struct{ *parts }

func (p fakeDocuments) Search(_ context.Context, q api.DocumentQuery) (api.DocumentPage, error) {
	p.mu.Lock()
	p.sought = append(p.sought, q)
	p.mu.Unlock()
	found := api.FoundMessage{
		QueueID: "q1", Account: "acme", Subject: "Hi", To: []string{"ann@example.com"}, Status: api.StatusSent,
		Lane: api.Transactional, Created: time.Unix(1, 0).UTC(),
		Highlights: api.Highlights{Subject: []api.Fragment{{Text: "Hi", Match: true}}, Text: []api.Fragment{}},
	}
	return api.DocumentPage{Total: 1, Page: q.Page, Pages: 1, Documents: []api.FoundMessage{found}}, p.asked(
		"Documents.Search")
}

func (p fakeDocuments) State(context.Context) (api.DocumentsState, error) {
	return api.DocumentsState{Store: "embedded", Documents: 7}, p.asked("Documents.State")
}

func (p fakeDocuments) Rebuild(context.Context) (api.DocumentRebuild, error) {
	return api.DocumentRebuild{Status: "wanted", Wanted: time.Unix(1, 0).UTC()}, p.asked("Documents.Rebuild")
}

// bound is a client with a token that is bound to the account acme.
func (w *world) bound() *api.Client { return api.NewClient(w.URL(), boundToken, w.http) }

func TestSearchAsksForWhatTheTokenMaySee(t *testing.T) {
	t.Parallel()
	w := setup(t)
	q := api.DocumentQuery{Q: `invoice "for you"`, Page: 2, PageSize: 50, Sort: api.SortRelevance, Cursor: "x"}
	page, err := api.SearchDocuments.Do(t.Context(), w.client, q)
	if err != nil || page.Total != 1 || page.Documents[0].Highlights.Subject[0].Text != "Hi" ||
		page.Facets.Status == nil {
		t.Errorf("%+v, %v", page, err)
	}
	if _, err := api.SearchDocuments.Do(t.Context(), w.bound(), api.DocumentQuery{
		Q: "account:other"}); err != nil {
		t.Error(err)
	}
	want := []api.DocumentQuery{q, {Q: "account:other", Account: "acme"}}
	if diff := cmp.Diff(want, w.parts.sought); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSearchIndexIsTheInstances(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s, err := api.GetDocuments.Do(t.Context(), w.client)
	if err != nil || s.Documents != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	b, err := api.RebuildDocuments.Do(t.Context(), w.client)
	if err != nil || b.Status != "wanted" {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := api.GetDocuments.Do(t.Context(), w.bound()); err == nil {
		t.Errorf("a bound token sees the state of the index: %v", err)
	}
	if _, err := api.RebuildDocuments.Do(t.Context(), w.bound()); err == nil {
		t.Error("a bound token rebuilds the index")
	}
}

func TestSearchTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.failWith(fault.InvalidFields([]fault.Field{
		{Key: "q", Message: `at character 1, "x:": there is no field x`}}))
	if _, err := api.SearchDocuments.Do(t.Context(), w.client, api.DocumentQuery{Q: "x:"}); err == nil {
		t.Error("a wrong query was answered")
	}
}
