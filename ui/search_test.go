package ui

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
)

// index is a search index that finds the same for every query.
type index struct {
	search.Store
	asked []search.Query
	found search.Found
}

func (i *index) Search(_ context.Context, s search.Query) (search.Found, error) {
	i.asked = append(i.asked, s)
	return i.found, nil
}

const evilText = `<script>alert("x")</script>`

func TestSearchShowsWhatWasFound(t *testing.T) {
	t.Parallel()
	w := setup(t)
	at := time.Now().Add(-time.Hour)
	hit := search.Hit{Document: search.Document{
		QueueID: "01ABC", Account: evilText, Subject: evilText, From: "shop@example.com",
		To: []string{evilText, "ada@example.net"}, Status: api.StatusSent,
		Lane: api.Bulk, Tags: []string{evilText}, Code: "EAUTH", Created: at, Ended: &at,
		Text: "your invoice" + evilText, TextKnown: true,
	}}
	w.index.found = search.Found{Total: 120, Hits: slices.Repeat([]search.Hit{hit}, rowsPerPage+1),
		Facets: map[query.Field][]search.Count{
			query.Status:  {{Value: "sent", Count: 1100}},
			query.Account: {{Value: `a"b`, Count: 1}, {Value: "the shop", Count: 2}},
			query.Tag:     {{Value: evilText, Count: 3}},
		}}
	b := w.operator()
	p := b.get("/search?" + url.Values{"q": {"invoice OR " + evilText}}.Encode())
	p.isSafe(t, "/search")
	p.eachFieldHasALabel(t, "/search")
	p.has(t, "120 messages", "<mark>invoice</mark>", "your ", `href="/messages/01ABC"`, "EAUTH", "Best first",
		`<form class="find"`,
		"status%3Asent", "account%3A%22the+shop%22", `a"b <small>1</small>`)
	cursor := regexp.MustCompile(`cursor=([^"&]+)`).FindStringSubmatch(p.body)[1]
	b.get("/search?q=invoice&sort=relevance&cursor="+cursor).has(t, "best match first", "(continued)", "Newest first",
		`href="/search?q=invoice&sort=relevance"`)
	var want []search.Query
	for _, q := range []string{"invoice OR " + evilText, "invoice"} {
		parsed, err := query.Parse(q, time.Now())
		w.must(err)
		want = append(want, search.Query{Where: parsed, Size: rowsPerPage + 1, Facets: true})
	}
	after := hit.Position()
	want[1].After, want[1].Relevance = &after, true
	if diff := cmp.Diff(want, w.index.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSearchSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.get("/search").has(t, "No messages yet.")
	b.get("/search?q=nobody").has(t, "No messages match.")
	p := b.get("/search?q=x%3A1")
	p.has(t, "This search isn’t possible: at character 1", `value="x:1"`)
	if p.status != http.StatusBadRequest {
		t.Errorf("status %d", p.status)
	}
	for q, quoted := range map[string]string{
		"https://shop.example/a?b=1": `"https://shop.example/a?b=1"`, "Your order :)": `"Your order :)"`,
		`Re: "offer" (new`: `"Re: offer (new"`,
	} {
		p := b.get("/search?" + url.Values{"q": {q}}.Encode())
		link := `href="/search?` + url.Values{"q": {quoted}}.Encode() + `"`
		p.has(t, "This search isn’t possible", link, "Search for exactly this text")
		if again := b.get("/search?" + url.Values{"q": {quoted}}.Encode()); again.status != http.StatusOK {
			t.Errorf("%s: status %d", quoted, again.status)
		}
	}
	if p := b.get("/search?q=%21%21%21"); strings.Contains(p.body, "Search for exactly this text") {
		t.Error("a link to what can't be searched for either")
	}
	w.searchWith(search.Options{Kind: "embedded", Exclusive: true})
	if p := b.get("/search?q=x"); p.status != http.StatusServiceUnavailable {
		t.Errorf("status %d", p.status)
	}
	w.searchWith(search.Options{Kind: "none"})
	b.get("/search?q=x").has(t, "There is no search index")
}

// searchWith has the pages search with other settings.
func (w *world) searchWith(o search.Options) {
	w.t.Helper()
	var err error
	w.ui.Documents, err = search.New(w.ui.Documents.Parts, o)
	w.must(err)
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
