package handlebars

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/postroom/postroom/internal/testkit"
)

var seeds = []string{
	"Hi {{name}}!", "{{#each l as |x i|}}{{i}}{{x.a}}{{@last}}{{else}}none{{/each}}",
	"{{#if (and a (gt n 1))}}a{{else if b}}b{{~else~}}c{{/if}}",
	"{{> p a x=1}}{{#> q}}{{> @partial-block}}{{/q}}{{#*inline \"p\"}}{{../a}}{{/inline}}",
	"{{{{raw}}}}{{a}}{{{{/raw}}}}{{!-- c --}}\\{{x}}",
	"  {{> p}}\n{{=<% %>=}}<% a %>",
	"{{date at 'long' tz='Asia/Tokyo'}}{{currency n 'EUR' locale='de'}}{{truncate name 3}}{{link u a class=b}}",
	"{{#with o}}{{@root.a.[0].b}}{{lookup ../l @index}}{{/with}}{{^x}}{{/x}}",
	"{{json .}}{{url u a=b}}{{plural n 'a' 'b' few='c'}}{{default a b ''}}",
}

// FuzzParse holds that whatever is read is either refused with its place or can be executed, soon.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, s, false)
		f.Add(s, "{{> p}}", true)
	}
	f.Fuzz(func(t *testing.T, source, part string, mustache bool) {
		start := testkit.CPUUsed(t)
		o := Options{Partials: map[string]string{"p": part, "q": "[{{> @partial-block}}]"}, Mustache: mustache,
			Limits: Limits{Steps: 20_000, Output: 1 << 18}}
		template, err := Parse(source, o)
		if err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.Message == "" || e.Line < 0 ||
				e.Line > 1+strings.Count(source+part, "\n") {
				t.Fatalf("%q: %#v", source, err)
			}
			return
		}
		template.Variables()
		data, _ := fuzzData(sample)
		if _, err := template.Execute(context.Background(), data, Input{}); err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("%q: %#v", source, err)
			}
		}
		if took := testkit.CPUUsed(t) - start; took > 20*time.Second {
			t.Fatalf("%q took %s", source, took)
		}
	})
}

// FuzzExecute feeds templates with any data, for each place a result may go: a header stays one line, html
// keeps values from being tags.
func FuzzExecute(f *testing.F) {
	f.Add(sample, "de", uint8(0))
	f.Add(`{"a":"<x>","l":[[1,[2]],{"a":"\r\nBcc: x"}],"o":{"l":[null,true]},"at":"2024-02-30","n":"1e400","name":"a\u0000b"}`, "xx", uint8(2))
	f.Add(`[1,2]`, "", uint8(3))
	var templates [4][]*Template
	for e := range templates {
		for _, s := range seeds {
			template, err := Parse(strings.NewReplacer("{{{{raw}}}}{{a}}{{{{/raw}}}}", "", "{{=<% %>=}}<% a %>",
				"").Replace(s), Options{
				Partials: map[string]string{"p": "{{a}}", "q": "[{{> @partial-block}}]"}, Escaping: Escaping(e),
				Limits: Limits{Steps: 20_000},
			})
			if err != nil {
				f.Fatal(err)
			}
			templates[e] = append(templates[e], template)
		}
	}
	f.Fuzz(func(t *testing.T, text, language string, e uint8) {
		data, ok := fuzzData(text)
		if !ok {
			return
		}
		for _, template := range templates[e%4] {
			r, err := template.Execute(context.Background(), data, Input{Locale: language})
			if err != nil {
				continue
			}
			switch Escaping(e % 4) {
			case Header:
				if strings.ContainsFunc(r.Text, unicode.IsControl) {
					t.Fatalf("%q", r.Text)
				}
			case HTML:
				if rest := strings.NewReplacer("<a href=", "", "</a>", "").Replace(r.Text); strings.Contains(rest, "<") &&
					!strings.Contains(template.main.text, "raw") {
					t.Fatalf("%q", r.Text)
				}
			}
		}
	})
}

// fuzzData reads JSON as requests are read.
func fuzzData(text string) (any, bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err == nil
}
