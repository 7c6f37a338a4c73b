package ui

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// finder plays the search index.
type finder struct {
	asked []api.DocumentQuery
	page  api.DocumentPage
	err   error

	deliveries api.DeliveryPage
}

func (f *finder) Search(_ context.Context, q api.DocumentQuery) (api.DocumentPage, error) {
	f.asked = append(f.asked, q)
	return f.page, f.err
}

const evilText = `<script>alert("x")</script>`

func TestSearchShowsWhatWasFound(t *testing.T) {
	t.Parallel()
	w := setup(t)
	at := time.Now().Add(-time.Hour)
	w.found.page = api.DocumentPage{
		Total: 120, Cursor: "next one",
		Documents: []api.FoundMessage{{
			QueueID: "01ABC", Account: evilText, Subject: evilText, From: "shop@example.com",
			To: []string{evilText, "ada@example.net"}, Status: api.StatusSent,
			Lane: api.Bulk, Tags: []string{evilText}, Code: "EAUTH", Created: at, Ended: &at,
			Highlights: api.Highlights{
				Subject: []api.Fragment{{Text: evilText, Match: true}}, Text: []api.Fragment{{Text: "your "},
					{Text: "invoice", Match: true}, {Text: evilText}},
			},
		}},
		Facets: api.DocumentFacets{
			Status: []api.FacetCount{{Value: "sent", Count: 1100}}, Account: []api.FacetCount{{Value: `a"b`, Count: 1},
				{Value: "the shop", Count: 2}}, Tag: []api.FacetCount{{Value: evilText, Count: 3}},
		},
	}
	b := w.operator()
	p := b.get("/search?" + url.Values{"q": {"invoice OR " + evilText}}.Encode())
	p.isSafe(t, "/search")
	p.eachFieldHasALabel(t, "/search")
	p.has(t, "120 messages", "<mark>invoice</mark>", "your ", `href="/messages/01ABC"`, "EAUTH", "Best first",
		`<form class="find"`,
		"status%3Asent", "account%3A%22the+shop%22", `a"b <small>1</small>`, "cursor=next+one")
	b.get("/search?q=invoice&sort=relevance&cursor=abc").has(t, "the best first", "further ones", "Newest first",
		`href="/search?q=invoice&sort=relevance"`)
	want := []api.DocumentQuery{
		{Q: "invoice OR " + evilText, PageSize: 50}, {Q: "invoice", PageSize: 50, Cursor: "abc",
			Sort: api.SortRelevance},
	}
	if diff := cmp.Diff(want, w.found.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSearchSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.get("/search").has(t, "Nothing can be found yet.")
	b.get("/search?q=nobody").has(t, "No message matches.")
	w.found.err = fault.InvalidFields([]fault.Field{
		{Key: "q", Message: `at character 1, "x:1": there is no field x`}})
	p := b.get("/search?q=x%3A1")
	p.has(t, "This can’t be searched for: at character 1", `value="x:1"`)
	if p.status != http.StatusBadRequest {
		t.Errorf("status %d", p.status)
	}
	w.found.err = fault.New(fault.Unavailable, "SearchElsewhere", "The index is elsewhere")
	if p := b.get("/search?q=x"); p.status != http.StatusServiceUnavailable {
		t.Errorf("status %d", p.status)
	}
	w.found.err = fault.New(fault.NotFound, "SearchOff", "There is no search index")
	b.get("/search?q=x").has(t, "There is no search index")
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]string{
		{"", "status", "sent", "status:sent"},
		{"invoice", "tag", "Spring Sale", `invoice tag:"Spring Sale"`},
		{"a OR b", "lane", "bulk", "(a OR b) lane:bulk"},
		{"x status:sent", "status", "sent", "x status:sent"},
		{"x", "tag", `a"b`, ""},
		{"x", "tag", "a*", `x tag:"a*"`},
	} {
		if got := narrow(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("narrow(%q, %q, %q) = %q, want %q", c[0], c[1], c[2], got, c[3])
		}
	}
}
