package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

func TestTemplateIsWrittenTriedComparedAndSent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	p := b.get("/templates/new")
	p.isSafe(t, "/templates/new")
	p.eachFieldHasALabel(t, "/templates/new")
	p.has(t, "POST /v1/templates/template · postroom template push", `formtarget="trial"`)

	f := url.Values{"id": {"order"}, "name": {"Order"}, "kind": {"template"}, "format": {"html"},
		"content.subject": {"Order {{params.number}}"}, "content.html": {"<p>One</p>\r\n<p>{{#if params.x}}</p>"},
		"sample": {"{\"number\": 7,\n\"name\" \"Ann\"}"}}
	p = b.post("/templates", f)
	if p.status != http.StatusBadRequest {
		t.Fatalf("a wrong sample answers %d", p.status)
	}
	p.has(t, `id="sample-wrong">isn’t valid JSON: line 2, column 8`, "Order {{params.number}}")
	f.Set("sample", `{"number": 7}`)
	p = b.post("/templates", f)
	p.has(t, `id="content.html-wrong">`, "line 2")
	p.isSafe(t, "a refused template")
	p = b.post("/templates/try", f)
	p.has(t, "content.html", "line 2")

	f.Set("content.html", "<style>p{color:red}</style><p>One</p>\n<p>Two</p>"+evilText)
	p = b.post("/templates/try", f)
	p.has(t, "Order 7", `srcdoc="<style>`)
	if csp := p.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "sandbox; default-src 'none'") {
		t.Errorf("the frame has the policy %q", csp)
	}
	b.submitForm("/templates", f).has(t, "Template order saved", "Order 7")

	p = b.get("/templates/order/edit")
	p.isSafe(t, "/templates/order/edit")
	p.eachFieldHasALabel(t, "/templates/order/edit")
	p.has(t, "Order {{params.number}}", `name="version" value="1"`)
	f.Set("version", "1")
	f.Set("content.html", "<p>One</p>\n<p>Three</p>")
	b.submitForm("/templates/order", f).has(t, "Saved as version 2.", "/templates/order/compare?from=1")
	f.Set("content.subject", "Mine")
	p = b.post("/templates/order", f)
	if p.status != http.StatusConflict {
		t.Errorf("a change of an old version answers %d", p.status)
	}
	p.has(t, "Someone else changed this template", "/templates/order/compare?from=1&to=2", `value="Mine"`)
	p = b.get("/templates/order/compare?from=1&to=2")
	p.isSafe(t, "versions")
	p.has(t, "content: html", "<ins><p>Three</p></ins>", "<del><p>Two</p>")
	b.get("/templates/order/compare?from=2&to=2").has(t, "The versions have the same content")
	if p := b.get("/templates/order/compare?from=x&to=9"); p.status != http.StatusBadRequest {
		t.Errorf("no version: %d", p.status)
	}

	b.submitForm("/templates/order/test", url.Values{"to": {"ada"}}).has(t, `class="flash bad"`)
	b.submitForm("/templates/order/test", url.Values{"to": {"ada@example.net"}}).has(t,
		"Test of template order sent", "Order 7")
}

// TestVariantsOfATemplateAreEdited: they are added, changed, shown beside the editor, and deleted.
func TestVariantsOfATemplateAreEdited(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	f := url.Values{"id": {"hi"}, "name": {"Hi"}, "kind": {"template"}, "format": {"html"},
		"content.subject": {"Hello"}, "content.text": {"Hello"}, "locale": {"de"}}
	b.post("/templates", f).has(t, `id="locale-wrong">needs content`)
	f.Set("locale", "de.CH")
	f.Set("added.subject", "Hallo")
	b.post("/templates", f).has(t, `id="locale-wrong">must be a locale`, `value="Hallo"`)
	f.Set("locale", "d")
	p := b.post("/templates", f)
	p.has(t, "Variant d", "must be a locale such as de", `name="locales.d.subject" value="Hallo"`)
	f.Set("locale", "de")
	b.submitForm("/templates", f).has(t, "Template hi saved", "Hallo")

	p = b.get("/templates/hi/edit")
	p.eachFieldHasALabel(t, "/templates/hi/edit")
	p.has(t, "Variant de", `name="locales.de.subject" value="Hallo"`, "Add a variant")
	f = url.Values{"name": {"Hi"}, "format": {"html"}, "version": {"1"}, "content.subject": {"Hello"},
		"content.text": {"Hello"}, "locales.de.subject": {"Guten Tag"}, "locales.de.text": {"Gruss\r\nHaus"},
		"locale": {"fr"}, "added.subject": {"Bonjour"}, "previewLocale": {"de"}}
	b.post("/templates/try", f).has(t, "Guten Tag")
	b.submitForm("/templates/hi", f).has(t, "Saved as version 2.")
	got, err := w.stored.Get(t.Context(), "", "hi")
	w.must(err)
	want := map[string]api.TemplateContent{"de": {Subject: "Guten Tag", Text: "Gruss\nHaus"},
		"fr": {Subject: "Bonjour"}}
	if diff := cmp.Diff(want, got.Locales); diff != "" {
		t.Error(diff)
	}
	f = url.Values{"name": {"Hi"}, "format": {"html"}, "version": {"2"}, "content.subject": {"Hello"},
		"content.text": {"Hello"}, "locales.de.subject": {""}, "locales.fr.html": {"{{#if x}}"}}
	b.post("/templates/hi", f).has(t, `id="locales.fr.html-wrong">`)
	f.Set("locales.fr.html", "")
	b.submitForm("/templates/hi", f).has(t, "Saved as version 3.")
	if got, err = w.stored.Get(t.Context(), "", "hi"); err != nil || len(got.Locales) != 0 {
		t.Errorf("%+v, %v", got.Locales, err)
	}
}

func TestTemplatesAreEditedByThoseWhoMay(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.stored.Create(t.Context(), "", api.TemplateRequest{ID: "all", Name: "Of all",
		TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Subject: "s", Text: "t"}}})
	w.must(err)
	viewer, bound := w.person("vic", api.RoleViewer), w.person("bea", api.RoleOperator, "default")
	viewer.get("/templates/all").lacks(t, "/templates/all/edit", "/templates/all/test\"><p>")
	f := url.Values{"name": {"x"}, "version": {"1"}, "format": {"html"}, "content.text": {"x"}}
	for _, path := range []string{"/templates", "/templates/all", "/templates/try", "/templates/all/test"} {
		if p := viewer.post(path, f); p.status != http.StatusForbidden {
			t.Errorf("a viewer posts to %s: %d", path, p.status)
		}
	}
	if p := bound.post("/templates/all", f); p.status == http.StatusSeeOther {
		t.Error("who is bound to an account changed the template of all")
	}
	f.Set("account", "other")
	if p := bound.post("/templates", f); p.status != http.StatusForbidden {
		t.Errorf("a template of another account: %d", p.status)
	}
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{"a\nb\nc", "a\nc", " a|−b| c"},
		{"a\nc", "a\nb\nc", " a|+b| c"},
		{"a\nb\nc\nd", "x\nb\ny\nd", "−a|+x| b|−c|+y| d"},
		{"", "x", "−|+x"},
		{"1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n7", " … 2 equal lines| 3| 4| 5|−6|+7"},
	} {
		var got []string
		for _, line := range diff(tt.before, tt.after) {
			got = append(got, line.Mark+line.Text)
		}
		if d := cmp.Diff(tt.want, strings.Join(got, "|")); d != "" {
			t.Errorf("%q to %q: %s", tt.before, tt.after, d)
		}
	}
	long := strings.Repeat("x\ny\n", 1000)
	if n := len(diff("a"+long, strings.ToUpper(long))); n != 4001 {
		t.Errorf("a comparison of long texts has %d lines", n)
	}
}
