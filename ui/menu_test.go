package ui

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// menu returns the menu of a page, without the mark of where it is.
func (p page) menu(t *testing.T) string {
	t.Helper()
	_, nav, _ := strings.Cut(p.body, `<nav aria-label="Pages">`)
	nav, _, found := strings.Cut(nav, "</nav>")
	if !found {
		t.Fatalf("the page (%d) has no menu:\n%s", p.status, p.body)
	}
	return strings.NewReplacer(` aria-current="page"`, "", ` class="here"`, "").Replace(nav)
}

// TestTheMenuIsTheSameOnEveryPage of a session, also where something is not there or not allowed.
func TestTheMenuIsTheSameOnEveryPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, b := range map[string]*browser{
		"a token": w.operator(), "an admin": w.person("root", api.RoleAdmin),
		"an operator": w.person("olga", api.RoleOperator), "a viewer": w.person("vera", api.RoleViewer),
		"somebody with an account": w.person("bob", api.RoleOperator, "default")} {
		b.header.Set("Accept", "text/html")
		want := b.get("/").menu(t)
		for _, path := range []string{"/outbox", "/settings", "/people/nobody", "/messages/unknown",
			"/accounts/nobody",
			"/webhooks", "/lists/unknown", "/no/such/page", "/nothing", "/log?status=nonsense", "/docs",
			"/docs/guide", "/docs/guide/nothing", "/playbooks"} {
			p := b.get(path)
			if diff := cmp.Diff(want, p.menu(t)); diff != "" {
				t.Errorf("%s: %s answers %d with another menu (-want +got):\n%s", name, path, p.status, diff)
			}
		}
	}
}

// TestTheMenuHasFewEntries: pages are in groups, and what somebody may not see is not there.
func TestTheMenuHasFewEntries(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, tc := range map[string]struct {
		b    *browser
		want string
	}{
		"an admin": {w.person("root", api.RoleAdmin), "Overview Mail Outbox Log Suppressions Rates Audience " +
			"Subscribers Lists Segments Imports Sending Campaigns Digests Templates Accounts Gateways Queues Webhooks " +
			"System Status API Settings Tokens People Sessions Audit Docs root"},
		"a viewer": {w.person("vera", api.RoleViewer), "Overview Mail Outbox Log Suppressions Rates Audience " +
			"Subscribers Lists Segments Imports Sending Campaigns Digests Templates Accounts Gateways Queues Webhooks " +
			"System Status API Docs vera"},
		"somebody with an account": {w.person("bob", api.RoleOperator, "default"), "Overview Mail Outbox Log " +
			"Suppressions Rates Audience Subscribers Lists Segments Imports Sending Campaigns Digests Templates " +
			"Account API Docs bob"},
	} {
		nav := tc.b.get("/").menu(t)
		var got []string
		for _, entry := range regexp.MustCompile(`<(?:a|summary)[^>]*>([^<]+)<`).FindAllStringSubmatch(nav, -1) {
			got = append(got, entry[1])
		}
		if diff := cmp.Diff(strings.Fields(tc.want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	b := w.operator()
	for path, want := range map[string]string{"/segments": `<details name="menu" class="here"><summary>Audience<`,
		"/docs/guide/dashboard": `<a href="/docs/guide" aria-current="page">Docs<`,
		"/docs":                 `<a href="/docs" aria-current="page">API<`,
		"/webhooks":             `<a href="/webhooks" aria-current="page">Webhooks<`} {
		b.get(path).has(t, want)
	}
}
