package templates

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/outbox/templates/handlebars"
)

// FuzzNormalise feeds samples: writing them in one way changes nothing of what they say, and doing it again
// changes nothing at all.
func FuzzNormalise(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":"\u003c\\u003c\\\u003e\u0026 <"}`, ` { "a" : [ 1 , null ] } `,
		`[1]`, `{"a":12345678901234567890}`, `{"\u003c":"\`, ``} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := definition{Sample: json.RawMessage(text)}
		normalise(&d)
		if !json.Valid([]byte(text)) {
			return
		}
		once := string(d.Sample)
		normalise(&d)
		if string(d.Sample) != once {
			t.Errorf("%q becomes %q, and then %q", text, once, d.Sample)
		}
		if once != "" && !reflect.DeepEqual(decoded(t, text), decoded(t, once)) {
			t.Errorf("%q says something else than %q", once, text)
		}
	})
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// FuzzCheck feeds definitions as people might write them: whatever they say is refused or can be put
// together, in each locale.
func FuzzCheck(f *testing.F) {
	f.Add("template", "Hi {{a}}", "<p>{{> x}}</p>", "de", "{{> (lookup . 'a')}}")
	f.Add("layout", "", "{{> @partial-block}}", "x-", "{{#> y}}{{/y}}")
	f.Add("partial", "s", "{{#*inline \"q\"}}{{> q}}{{/inline}}", "de_CH", "{{{a}}}")
	f.Fuzz(func(t *testing.T, kind, subject, html, locale, text string) {
		d := definition{Content: api.TemplateContent{Subject: subject, HTML: html, Text: text},
			Locales: map[string]api.TemplateContent{locale: {HTML: text}}}
		normalise(&d)
		if len(checkDefinition(kind, &d)) > 0 {
			return
		}
		e := &entry{ID: "t", Value: record{Kind: kind, Name: "x"}}
		if _, err := e.Value.renew(&d, 0, testkit.ClockStart); err != nil {
			t.Fatal(err)
		}
		l := library{catalog: newCatalog("0", []*entry{e}), have: map[string]*definition{"t": &d},
			refs: map[string]handlebars.References{}}
		wrong, err := l.verify(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []string{"", locale} {
			if _, read, w := l.readVariant(e, in); (read == nil) != (len(w) > 0) || len(w) > 0 && len(wrong) == 0 {
				t.Errorf("%q: %v, of %v", in, w, wrong)
			}
		}
	})
}
