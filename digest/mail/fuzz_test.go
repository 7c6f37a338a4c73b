package mail

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// FuzzWrite checks that no data gets out of its place. A subject stays one line, a group one line of the
// text, html keeps its elements, and nothing is executed as a template.
func FuzzWrite(f *testing.F) {
	for _, g := range hostile().Groups {
		f.Add(g.Title, g.Actors[0].Name, g.Kind, g.URL, "en", 3, 2)
	}
	for _, g := range rightToLeft().Groups {
		f.Add(g.Title, g.Actors[0].Name, g.Kind, g.URL, "ar", 1, 0)
	}
	f.Add("{{#with params}}", "{lead}{n}", "{{!", "https://x.test/{{/with}}", "fr_CA", 1, -1)
	f.Add("\"'`=&", "</style>", "--><script>", "http://x.test/'`", "de", -5, 1<<40)
	f.Add("\u2068", "\u200d\u0301", "\ufffe", "https://x.test/\u2069", "x-\x00", 0, 0)
	f.Fuzz(func(t *testing.T, title, name, kind, url, locale string, count, others int) {
		event := Group{Category: "comments", EntityType: title, EntityID: "7", Kind: kind, Title: title, URL: url,
			Count: count, First: saturday, Last: saturday, Actors: []Actor{{Name: name}, {Name: "Bo", URL: url}},
			Others: others}
		for _, groups := range [][]Group{{event}, {event, event, one().Groups[0]}} {
			d := Digest{Groups: groups, Total: count, Schedule: kind, From: saturday, To: saturday, FeedURL: url}
			if len(groups) > 1 {
				d.Rest = Rest{Groups: count, Events: others}
			}
			mail, err := Write(d, locale, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			if mail.HTML != htmlSource || mail.Text != textSource {
				t.Fatal("the source depends on the data")
			}
			words := rendered(t, mail, "en", "https://mail.example.com")
			p := read(t, d, locale, time.UTC)
			checkLines(t, d, locale, time.UTC, words.Text)
			checkSubject(t, words.Subject, p.Subject)
			checkHTML(t, words.HTML, p)
		}
	})
}

func checkSubject(t *testing.T, got, want string) {
	t.Helper()
	if got != want || strings.ContainsFunc(got, unicode.IsControl) || strings.ContainsAny(got, "\u2028\u2029") {
		t.Errorf("the subject is %q, want %q", got, want)
	}
	if n := utf8.RuneCountInString(got); n > maxSubject {
		t.Errorf("the subject has %d characters: %q", n, got)
	}
}

// allowed are the attributes of the elements that an email has.
var allowed = map[string]string{
	"html": "lang dir", "head": "", "meta": "charset name content", "title": "", "style": "",
	"body": "class style", "div": "class lang dir style role", "h1": "style", "p": "class style", "ul": "style",
	"li": "class style", "a": "class href style", "span": "dir style",
}

// checkHTML holds that html has only our elements, one for each group, and the data as text.
func checkHTML(t *testing.T, source string, p digest) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	items, texts := 0, map[string]bool{}
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			texts[n.Data] = true
		case html.ElementNode:
			attributes, ok := allowed[n.Data]
			if !ok {
				t.Fatalf("there is an element %s in\n%s", n.Data, source)
			}
			if n.Data == "li" {
				items++
			}
			for _, a := range n.Attr {
				if !strings.Contains(" "+attributes+" ", " "+a.Key+" ") {
					t.Fatalf("%s has an attribute %s in\n%s", n.Data, a.Key, source)
				}
				if a.Key == "href" && !strings.HasPrefix(a.Val, "https://mail.example.com/") &&
					a.Val != p.FeedURL && a.Val != p.Groups[0].URL && a.Val != one().Groups[0].URL {
					t.Fatalf("there is a link to %q in\n%s", a.Val, source)
				}
			}
		case html.CommentNode:
			t.Fatalf("there is a comment in\n%s", source)
		}
	}
	if want := len(p.Groups); items != want && !p.Single || p.Single && items != 0 {
		t.Errorf("%d of %d groups are in\n%s", items, want, source)
	}
	for _, g := range p.Groups {
		if !texts[g.Title] || !texts[g.Kind] && g.Kind != "" {
			t.Fatalf("the text %q or %q is not in\n%s", g.Title, g.Kind, source)
		}
	}
}
