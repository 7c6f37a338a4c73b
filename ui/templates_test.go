package ui

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// template stores one.
func (w *world) template(req api.TemplateRequest) {
	w.t.Helper()
	_, err := w.stored.Create(w.t.Context(), "", req)
	w.must(err)
}

func order() api.TemplateRequest {
	return api.TemplateRequest{ID: "order", Name: "Order <b>", Description: "After buying",
		TemplateDefinition: api.TemplateDefinition{
			Content: api.TemplateContent{Subject: "Order {{params.no}} {{params.gone}}",
				HTML: `<p style="color:red">Hello {{params.name}}</p><script>alert(1)</script>`},
			Locales: map[string]api.TemplateContent{"de": {Subject: "Bestellung {{params.no}}"}},
			Sample:  json.RawMessage(`{"no":7,"name":"<Ann>"}`),
		}}
}

func TestTemplatesAreListed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.get("/templates").has(t, "No templates yet", "postroom template push")
	w.template(order())
	shop := "shop"
	w.template(api.TemplateRequest{ID: "foot", Account: &shop, Name: "foot", Kind: "partial",
		TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Text: "x"}}})
	p := b.get("/templates")
	p.has(t, "2 templates", "Order <b>", "After buying", `href="/templates/order"`, "foot", "shop")
	p.lacks(t, "color:red")
	b.get("/templates?kind=partial").has(t, "1 template", "foot")
	b.get("/templates?search=BUYING").has(t, "1 template", "order")
	b.get("/templates?account=none").has(t, "No template matches", "Clear")
	if p := b.get("/templates?kind=thing"); p.status != http.StatusBadRequest {
		t.Errorf("a kind there isn't: %d", p.status)
	}
}

func TestATemplateIsShownWithItsPreview(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.template(order())
	b := w.operator()
	p := b.get("/templates/order")
	p.isSafe(t, "/templates/order")
	p.has(t, "Order <b>", "Order 7", "Hello <Ann>",
		"<code>params.gone</code> <small>(subject, line 1, column 23)", "1 version", "current", "{{params.name}}",
		`<iframe class="mail" src="/templates/order/preview?version=1" sandbox`)
	p.lacks(t, "Restore version")
	if strings.Contains(p.body, "<script>alert") {
		t.Error("the template's html is in the page")
	}
	b.get("/templates/order?locale=de-CH").has(t, "Bestellung 7", "variant <strong>de</strong>",
		"preview?locale=de-CH&version=1")

	f := b.get("/templates/order/preview?version=1")
	f.has(t, `<p style="color:red">Hello <Ann></p>`, "<script>alert(1)</script>")
	csp := f.header.Get("Content-Security-Policy")
	for _, want := range []string{"sandbox;", "default-src 'none'", "frame-ancestors 'self'",
		"style-src 'unsafe-inline'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("the policy %q lacks %s", csp, want)
		}
	}
	if strings.Contains(csp, "script") || strings.Contains(csp, "allow-") || strings.Contains(csp, "http") ||
		f.header.Get("X-Frame-Options") != "SAMEORIGIN" {
		t.Errorf("the preview may do too much: %v", f.header)
	}
	for _, path := range []string{"/templates/none", "/templates/order?version=9", "/templates/order?version=x",
		"/templates/none/preview", "/templates/a%20b"} {
		if p := b.get(path); p.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	if p := b.get("/templates/order?locale=" + strings.Repeat("x", 65)); p.status != http.StatusBadRequest {
		t.Errorf("a long locale: %d", p.status)
	}
	if p := w.browser().get("/templates/order/preview"); p.status != http.StatusSeeOther {
		t.Errorf("the preview is open to everybody: %d", p.status)
	}
}

func TestATemplateThatCantBeFilledIsShownAllTheSame(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.template(api.TemplateRequest{ID: "t", Name: "T", TemplateDefinition: api.TemplateDefinition{
		Content: api.TemplateContent{HTML: `{{#*inline 'p'}}{{#if params.a}}{{> p}}{{/if}}{{/inline}}{{> p}}`},
		Sample:  json.RawMessage(`{"a":true}`),
	}})
	b := w.operator()
	p := b.get("/templates/t")
	p.has(t, "more than 16 deep", "{{#if params.a}}")
	p.lacks(t, "<iframe")
	if p := b.get("/templates/t/preview"); p.status != http.StatusUnprocessableEntity {
		t.Errorf("%d", p.status)
	}
}

func TestAnEarlierVersionIsShownAndRestored(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.template(order())
	_, err := w.stored.Update(t.Context(), "", "order", api.TemplatePatch{
		Content: &api.TemplateContent{Subject: "Changed"}})
	w.must(err)
	b := w.operator()
	b.get("/templates/order").has(t, "2 versions", "Changed", `href="/templates/order?version=1"`)
	p := b.get("/templates/order?version=1")
	p.has(t, "This is version 1", "Restore version 1", "Order 7")
	p.isSafe(t, "an earlier version")
	b.submitForm("/templates/order/restore", url.Values{"version": {"1"}}).has(t,
		"The current version is 3, with the content of version 1.", "restored from 1")
	b.submitForm("/templates/order/restore", url.Values{"version": {"77"}}).has(t, "has no version 77")
	if p := b.post("/templates/order/restore", url.Values{"version": {"x"}}); p.status != http.StatusBadRequest {
		t.Errorf("%d", p.status)
	}
	b.header.Set("Sec-Fetch-Site", "cross-site")
	if p := b.post("/templates/order/restore", url.Values{"version": {"2"}}); p.status != http.StatusForbidden {
		t.Errorf("from another site: %d", p.status)
	}
}
