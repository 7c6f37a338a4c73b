package ui

import (
	"net/http"
	"net/url"
	"testing"
)

// TestTheme: a browser keeps the colours it chose, before the login too.
func TestTheme(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.browser()
	b.get("/login").has(t, `<html lang="en">`, `value="system" aria-describedby="theme" aria-pressed="true"`)
	for _, theme := range []string{"dark", "light"} {
		b.submitForm("/theme", url.Values{"theme": {theme}})
		b.get("/login").has(t, `<html lang="en" data-theme="`+theme+`">`,
			`value="`+theme+`" aria-describedby="theme" aria-pressed="true"`)
	}
	b.submitForm("/theme", url.Values{"theme": {"system"}})
	b.get("/login").has(t, `<html lang="en">`)
	for from, want := range map[string]string{"/log?tag=a": "/log?tag=a", "/login": "/", "": "/"} {
		b.header.Set("Referer", w.URL+from)
		if got := b.post("/theme", url.Values{"theme": {"dark"}}).to(); got != want {
			t.Errorf("from %q the form leads to %q, not %q", from, got, want)
		}
	}
	for _, wrong := range []string{"", "blue", `"><script>`} {
		p := b.post("/theme", url.Values{"theme": {wrong}})
		if p.status != http.StatusBadRequest {
			t.Errorf("theme %q: %d", wrong, p.status)
		}
		p.has(t, "is not system, light or dark")
	}
	b.header.Set("Origin", "https://evil.example")
	if p := b.post("/theme", url.Values{"theme": {"dark"}}); p.status != http.StatusForbidden {
		t.Errorf("another site sets the colours: %d", p.status)
	}
}
