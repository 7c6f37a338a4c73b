package search

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/search/query"
)

func marksOf(t *testing.T, q string, field query.Field) []query.Node {
	t.Helper()
	n, err := query.Parse(q, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return query.Marks(n, field)
}

func TestMark(t *testing.T) {
	for name, c := range map[string]struct {
		q, text string
		want    []api.Fragment
	}{
		"nothing asked": {"", "Your invoice", []api.Fragment{{Text: "Your invoice"}}},
		"a word": {"invoice", "Your Invoice, no. 7", []api.Fragment{{Text: "Your "},
			{Text: "Invoice", Match: true}, {Text: ", no. 7"}}},
		"accents": {"brulee", "Crème brûlée!", []api.Fragment{{Text: "Crème "}, {Text: "brûlée", Match: true},
			{Text: "!"}}},
		"a prefix": {"inv*", "invoices invite", []api.Fragment{{Text: "invoices", Match: true}, {Text: " "},
			{Text: "invite", Match: true}}},
		"a phrase": {`"your invoice"`, "invoice your - invoice", []api.Fragment{{Text: "invoice "},
			{Text: "your - invoice", Match: true}}},
		"overlapping": {`"a1 b1" "b1 c1"`, "a1 b1 c1 b1", []api.Fragment{{Text: "a1 b1 c1", Match: true},
			{Text: " b1"}}},
		"not wanted":   {"-invoice", "invoice", []api.Fragment{{Text: "invoice"}}},
		"elsewhere":    {"to:invoice text:invoice", "invoice", []api.Fragment{{Text: "invoice"}}},
		"an empty one": {"invoice", "", []api.Fragment{}},
	} {
		if diff := cmp.Diff(c.want, mark(c.text, marksOf(t, c.q, query.Subject))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPassage(t *testing.T) {
	long := strings.Repeat("some words that nobody asked for ", 30)
	for name, c := range map[string]struct {
		text  string
		check func(f []api.Fragment, all string) bool
	}{
		"far behind": {long + "here is the parcel, and another parcel " + long,
			func(_ []api.Fragment, all string) bool {
				return strings.HasPrefix(all, "… ") && strings.HasSuffix(all, " …")
			}},
		"at the start": {"parcel " + long, func(f []api.Fragment, _ string) bool { return f[0].Match }},
		"at the end":   {long + "parcel", func(f []api.Fragment, _ string) bool { return f[len(f)-1].Match }},
		"nowhere": {long, func(_ []api.Fragment, all string) bool {
			return strings.HasPrefix(all, "some words") && strings.HasSuffix(all, " …")
		}},
		"short": {"a parcel", func(_ []api.Fragment, all string) bool { return all == "a parcel" }},
		"one long word": {strings.Repeat("é", 3000), func(_ []api.Fragment, all string) bool {
			return utf8.ValidString(all)
		}},
	} {
		f, all := passage(c.text, marksOf(t, "parcel", query.Text)), ""
		found := false
		for _, piece := range f {
			all += piece.Text
			found = found || piece.Match && piece.Text == "parcel"
		}
		if len(all) > passageLength+40 || found != strings.Contains(c.text, "parcel") || !c.check(f, all) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestExcerpt(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		" \r\n a \t b\n\n":         "a b",
		"one two three":            "one two",
		"one two 90":               "one two 90",
		"one two 901":              "one two",
		strings.Repeat("x", 20):    strings.Repeat("x", 10),
		strings.Repeat("é", 20):    strings.Repeat("é", 5),
		"a\xff b":                  "a\uFFFD b",
		"0123456789 after the end": "0123456789",
	} {
		if got := excerpt(text, 10); got != want {
			t.Errorf("excerpt(%q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzHighlight shows mail of anonymous clients: the subject comes out whole, whatever it is, and a passage
// is no longer than it may be.
func FuzzHighlight(f *testing.F) {
	f.Add("Crème brûlée <b>invoice</b>", "invoice")
	f.Add("発票\x00\xff é́ invoice invoice", `"invoice invoice" OR in*`)
	f.Fuzz(func(t *testing.T, text, q string) {
		n, err := query.Parse(q, time.Now())
		if err != nil {
			return
		}
		all := ""
		for _, piece := range mark(text, query.Marks(n, query.Subject)) {
			if piece.Text == "" {
				t.Fatalf("%q: an empty piece", text)
			}
			all += piece.Text
		}
		if all != text {
			t.Fatalf("%q became %q", text, all)
		}
		short := excerpt(text, 300)
		if len(short) > 300 || !utf8.ValidString(short) {
			t.Fatalf("the excerpt of %q is %q", text, short)
		}
		passage(short, query.Marks(n, query.Text))
	})
}
