package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestSavedFilters: a filter of a list is saved under a name, opened, replaced and deleted; each list has its
// own, and a viewer may, too.
func TestSavedFilters(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.get("/log").lacks(t, "Save this filter", "Saved filters")
	b.get("/log?tag=spring&cursor=&page=0").has(t, "Save this filter", `name="at" value="/log?tag=spring"`)
	b.submitForm("/filters", url.Values{"name": {" Spring mail "}, "at": {"/log?tag=spring"}}).has(t,
		"is saved in this browser", `<a href="/log?tag=spring">Spring mail</a>`)
	b.get("/log").has(t, `<a href="/log?tag=spring">Spring mail</a>`)
	b.get("/outbox").lacks(t, "Spring")
	b.submitForm("/filters", url.Values{"name": {"Spring mail"}, "at": {"/log?tag=winter"}})
	replaced := b.get("/log")
	replaced.has(t, `<a href="/log?tag=winter">`)
	replaced.lacks(t, `<a href="/log?tag=spring">`)
	b.submitForm("/filters", url.Values{"name": {"Spring mail"}, "at": {"/log?tag=winter"}, "delete": {"1"}})
	b.get("/log").lacks(t, "Spring")
}

func TestSavedFiltersAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	for name, form := range map[string]url.Values{
		"no name":       {"at": {"/log?tag=a"}},
		"a long name":   {"name": {strings.Repeat("n", 41)}, "at": {"/log?tag=a"}},
		"lines":         {"name": {"a\nb"}, "at": {"/log?tag=a"}},
		"no filter":     {"name": {"a"}, "at": {"/log"}},
		"another site":  {"name": {"a"}, "at": {"https://evil.example/?a=b"}},
		"a script":      {"name": {"a"}, "at": {"javascript:alert(1)?"}},
		"too much room": {"name": {"a"}, "at": {"/log?search=" + strings.Repeat("x", 3_000)}},
	} {
		if p := b.post("/filters", form); p.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, p.status)
		}
	}
	for i := range savedMost {
		b.submitForm("/filters", url.Values{"name": {fmt.Sprint("f", i)}, "at": {"/log?tag=a"}})
	}
	b.post("/filters", url.Values{"name": {"more"}, "at": {"/log?tag=a"}}).has(t, "Delete one")
	b.header.Set("Cookie", savedCookie+"=garbage")
	b.get("/log").lacks(t, ">f0</a>")
	b.header.Set("Origin", "https://evil.example")
	got := b.post("/filters", url.Values{"name": {"a"}, "at": {"/log?tag=a"}}).status
	if got != http.StatusForbidden {
		t.Errorf("another site saves a filter: %d", got)
	}
}
