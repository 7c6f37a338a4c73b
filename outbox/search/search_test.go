package search_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/search"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for n := range 45 {
		w.tell(event.MessageQueued, message(n))
	}
	w.finds("", 45)
	search := func(q api.DocumentQuery) api.DocumentPage {
		t.Helper()
		page, err := w.Search(t.Context(), q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		return page
	}

	page := search(api.DocumentQuery{Q: "invoice"})
	if page.Total != 45 || page.Pages != 3 || len(page.Documents) != 20 || page.Documents[0].QueueID != id(44) ||
		page.Cursor == "" {
		t.Errorf("the first page: %d of %d, %d pages, cursor %q", len(page.Documents), page.Total, page.Pages,
			page.Cursor)
	}
	second, next := search(api.DocumentQuery{Q: "invoice", Page: 1}), search(api.DocumentQuery{
		Q: "invoice", Cursor: page.Cursor})
	next.Page = 1
	if diff := cmp.Diff(second, next); diff != "" {
		t.Errorf("the second page (-by number +by cursor):\n%s", diff)
	}
	if last := search(api.DocumentQuery{Page: 2}); len(last.Documents) != 5 || last.Cursor != "" {
		t.Errorf("the last page: %d, cursor %q", len(last.Documents), last.Cursor)
	}
	if beyond := search(api.DocumentQuery{Page: 7}); len(beyond.Documents) != 0 || beyond.Total != 45 {
		t.Errorf("beyond: %+v", beyond)
	}
	best := search(api.DocumentQuery{Q: "invoice number7 OR number8", Sort: api.SortRelevance, PageSize: 1})
	rest := search(api.DocumentQuery{Q: "invoice number7 OR number8", Sort: api.SortRelevance, PageSize: 1,
		Cursor: best.Cursor})
	if best.Total != 2 || len(rest.Documents) != 1 || rest.Cursor != "" ||
		rest.Documents[0].QueueID == best.Documents[0].QueueID {
		t.Errorf("the best %+v, the rest %+v", best, rest)
	}

	own := search(api.DocumentQuery{Account: "shop"})
	if own.Total != 23 {
		t.Errorf("shop finds %d of its own, want 23", own.Total)
	}
	want := api.DocumentFacets{
		Status: []api.FacetCount{{Value: "queued", Count: 23}}, Account: []api.FacetCount{
			{Value: "shop", Count: 23}},
		Tag: []api.FacetCount{{Value: "invoice", Count: 23}}, Lane: []api.FacetCount{
			{Value: "transactional", Count: 23}},
	}
	if diff := cmp.Diff(want, own.Facets); diff != "" {
		t.Errorf("facets (-want +got):\n%s", diff)
	}
	if other := search(api.DocumentQuery{Q: "account:news", Account: "shop"}); other.Total != 0 {
		t.Errorf("shop finds %d of news", other.Total)
	}

	one := search(api.DocumentQuery{Q: `"text of number7" invoice`}).Documents[0].Highlights
	highlights := api.Highlights{
		Subject: []api.Fragment{{Text: "Invoice", Match: true}, {Text: " 7"}},
		Text: []api.Fragment{{Text: "Dear customer, this is the "}, {Text: "text of number7", Match: true},
			{Text: "."}},
	}
	if diff := cmp.Diff(highlights, one); diff != "" {
		t.Errorf("highlights (-want +got):\n%s", diff)
	}
}

func TestSearchRefuses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.finds("", 0)
	for name, c := range map[string]struct {
		query api.DocumentQuery
		want  string
	}{
		"a wrong query":     {api.DocumentQuery{Q: "status:gone"}, `q: at character 8, "gone": status is one of`},
		"a page too far":    {api.DocumentQuery{Page: 500}, "page: pages end at 10000 messages"},
		"a page very far":   {api.DocumentQuery{Page: 1 << 60}, "page: pages end at 10000 messages"},
		"a large page":      {api.DocumentQuery{PageSize: 501}, "pageSize: must be between 1 and 500"},
		"another order":     {api.DocumentQuery{Sort: "size"}, "sort: must be newest or relevance"},
		"no cursor":         {api.DocumentQuery{Cursor: "!"}, "cursor: isn't a cursor from a response"},
		"not our cursor":    {api.DocumentQuery{Cursor: "W10"}, "cursor: isn't a cursor from a response"},
		"half a cursor":     {api.DocumentQuery{Cursor: "WzAsMV0"}, "cursor: isn't a cursor from a response"},
		"a cursor of words": {api.DocumentQuery{Cursor: "eyJhIjoxfQ"}, "cursor: isn't a cursor from a response"},
	} {
		if _, err := w.Search(t.Context(), c.query); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if page, err := w.Search(t.Context(), api.DocumentQuery{Page: 499}); err != nil || page.Total != 0 {
		t.Errorf("the last page there can be: %+v, %v", page, err)
	}
}

// TestSearchDoesNotTakeForEver: a search ends when its time is over.
func TestSearchDoesNotTakeForEver(t *testing.T) {
	t.Parallel()
	w := setup(t, func(_ *search.Parts, o *search.Options) { o.SearchTimeout = 1 })
	until(t, "the index is kept", func() bool {
		s, err := w.State(t.Context())
		return err == nil && s.Indexer != "" && s.Seen != nil
	})
	if _, err := w.Search(t.Context(), api.DocumentQuery{}); fault.CodeOf(err) != "SearchTooSlow" {
		t.Errorf("%v, want SearchTooSlow", err)
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for n := range 10 {
		w.tell(event.MessageQueued, message(n))
	}
	w.finds("", 10)
	match := func(q string, ids ...string) map[string]bool {
		t.Helper()
		got, err := w.Match(t.Context(), q, ids)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		return got
	}
	if diff := cmp.Diff(map[string]bool{id(3): true}, match("number3 OR number4", id(2), id(3),
		"unknown")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := match("invoice", id(1), id(2)); len(got) != 2 {
		t.Errorf("a word that all have finds %v", got)
	}
	if got := match("invoice"); len(got) != 0 {
		t.Errorf("among no messages there is %v", got)
	}
	if _, err := w.Match(t.Context(), "status:gone", nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("a wrong query: %v", err)
	}
	if _, err := w.Match(t.Context(), "", make([]string, search.MaxMatch+1)); err == nil {
		t.Error("too many messages are taken")
	}
}
