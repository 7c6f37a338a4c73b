package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
)

// TestFailuresAreExplainedOnTheOverview: with what a reply means, and a link that replays all with this
// reason.
func TestFailuresAreExplainedOnTheOverview(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["bob@example.net"] = "550-5.7.26 Gmail requires all senders to authenticate with SPF or DKIM"
	failed := ""
	for range 2 {
		failed = w.submit(api.SubmitRequest{To: api.Addresses{{Address: "bob@example.net"}}})
		w.deliver(failed)
	}
	b := w.operator()
	b.get("/").has(t, "Gmail: the message isn't authenticated", `data-label="Messages">2</td>`,
		"/messages/"+failed, `href="/replay?reason=gmailUnauthenticated"`)
	b.get("/replay?reason=gmailUnauthenticated").has(t, "Send 2 failed messages again?")
	w.person("vera", api.RoleViewer).get("/").lacks(t, "/replay?reason=")
}

// TestWebhooksListShowsHowTheyDo: description, share of successes, last error and backlog of each endpoint.
func TestWebhooksListShowsHowTheyDo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(hooks.Close)
	e, err := w.webhooks.Create(t.Context(), api.EndpointRequest{URL: hooks.URL, Description: "CRM " + evilText})
	w.must(err)
	w.deliveries(e.ID, 3)
	page, err := w.webhooks.Deliveries(t.Context(), e.ID, 0, 3)
	w.must(err)
	w.attempt(e.ID, page.Deliveries[0].ID)
	p := w.operator().get("/webhooks")
	p.isSafe(t, "/webhooks")
	p.has(t, "CRM ", "0.0 %", "of 1 request", "answered 500 Internal Server Error",
		`data-label="Waiting" class="num">3<`)
}

// TestPresetsOfAnEndpoint: and every event is in one group of the form.
func TestPresetsOfAnEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	ticked := func(path string) int { return strings.Count(b.get(path).body, " checked>") }
	if n := ticked("/webhooks/new?preset=failures"); n != len(failureEvents) {
		t.Errorf("%d events are ticked, want %d", n, len(failureEvents))
	}
	if n := ticked("/webhooks/new?preset=all"); n != 0 {
		t.Errorf("%d events are ticked, want none, which means all", n)
	}
	seen := map[event.Type]int{}
	for _, g := range eventGroups {
		for _, e := range g.Events {
			seen[e.Type]++
		}
	}
	for _, e := range event.Types() {
		if seen[e] != 1 {
			t.Errorf("%s is in %d groups", e, seen[e])
		}
	}
}

// TestTickedMessagesAreChanged and a user of another account can't change them.
func TestTickedMessagesAreChanged(t *testing.T) {
	t.Parallel()
	w := setup(t)
	later := []string{w.later(api.SubmitRequest{}), w.later(api.SubmitRequest{})}
	b := w.operator()
	p := b.get("/outbox")
	p.isSafe(t, "/outbox")
	p.eachFieldHasALabel(t, "/outbox")
	p.has(t, `name="id" value="`+later[0]+`" form="ticked"`, "Cancel ticked…")
	send := func(b *browser, do string, ids ...string) page {
		return b.submitForm("/outbox/ticked", url.Values{"do": {do}, "id": ids, "back": {"/outbox"}})
	}
	send(b, "now").has(t, "Tick the messages first.")
	send(b, "now", later[0]).has(t, "1 message is due now.")
	w.account("club")
	send(w.person("bob", api.RoleOperator, "club"), "cancel", later[1]).has(t, "0 messages were cancelled.",
		"1 message was skipped")
	send(b, "cancel", later[1], "01JZZZZZZZZZZZZZZZZZZZZZZZ").has(t, "1 message was cancelled.",
		"1 message was skipped")
	viewer := w.person("vera", api.RoleViewer)
	viewer.get("/outbox").lacks(t, `name="id"`, "ticked")
	p = viewer.post("/outbox/ticked", url.Values{"do": {"now"}, "id": later})
	if p.status != http.StatusForbidden {
		t.Errorf("a viewer: %d", p.status)
	}
	if p := b.post("/outbox/ticked", url.Values{"do": {"eat"}, "id": later}); p.status != http.StatusBadRequest {
		t.Errorf("an unknown action: %d", p.status)
	}
}

func TestAuditSentences(t *testing.T) {
	t.Parallel()
	const done, refused, failed, begun = api.AuditDone, api.AuditRefused, api.AuditFailed, api.AuditBegun
	who := api.AuditActor{Kind: "person", Name: "ann"}
	entry := func(action, kind, id string, result api.AuditResult) api.AuditEntry {
		return api.AuditEntry{Action: action, Who: who, Object: &api.AuditObject{Kind: kind, ID: id},
			Result: result}
	}
	for _, c := range []struct {
		want  string
		entry api.AuditEntry
	}{
		{"Account legacy was added by ann", entry("POST /v1/account", "account", "legacy", done)},
		{"Account legacy was changed by ann", entry("PUT /v1/account/{account}", "account", "legacy", done)},
		{"Webhook endpoint x was not deleted by ann",
			entry("DELETE /v1/webhook-endpoints/{id}", "endpoint", "x", refused)},
		{"Queue bulk was paused by ann", entry("POST /queues/{queue}/pause", "queue", "bulk", done)},
		{"Queue bulk may have been paused by ann",
			entry("POST /admin/queues/bulk:pause", "queue", "bulk", begun)},
		{"Settings were changed by ann", entry("POST /settings", "settings", "", done)},
		{"User bob was given a sign-in link by ann", entry("POST /people/{id}/link", "person", "bob", done)},
		{"Token 1 was replaced by ann", entry("POST /tokens/{id}/rotate", "token", "1", done)},
		{"ann signed in", api.AuditEntry{Action: "login", Who: who}},
		{"ann: secret rotate", api.AuditEntry{Action: "secret rotate", Who: who}},
		{"Message A was cancelled by ann", entry("POST /messages/{id}/cancel", "message", "A", done)},
		{"Campaign may was changed by ann", entry("PATCH /v1/campaigns/{campaign}", "campaign", "may", done)},
		{"Suppression was added by ann", entry("POST /suppressions/add", "suppression", "", done)},
		{"Category comment was not changed by ann",
			entry("POST /digests/kinds/{account}/{id}", "digestKind", "comment", failed)},
		{"ann sent a request", api.AuditEntry{Action: "GET /v1/tokens", Who: who}},
		{"ann sent a request that was refused",
			api.AuditEntry{Action: "GET /v1/tokens", Who: who, Result: api.AuditRefused}},
		{"Subscriber 7 was unsubscribed by ann",
			entry("POST /audience/{account}/{id}/leave", "subscriber", "7", done)},
		{"Template order was restored by ann", entry("POST /templates/{id}/restore", "template", "order", done)},
		{"DKIM key example.com was deleted by ann",
			entry("DELETE /v1/dkim/{domain}", "dkim", "example.com", done)},
		{"Search index was changed by ann", entry("PUT /v1/documents/rebuild", "documents", "", done)},
		{"Gateway ses was given a provider webhook by ann",
			entry("POST /gateways/{id}/webhook", "gateway", "ses", done)},
	} {
		if got := auditSentence(c.entry); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestTwinsExist: each page's request is an operation of the API.
func TestTwinsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, o := range api.Operations() {
		known[o.Method+" "+o.Path] = true
	}
	for page, text := range twins {
		for _, one := range strings.Split(text, "; ") {
			if request, _, _ := strings.Cut(one, " · "); !known[request] {
				t.Errorf("%s names %s, which isn't an operation", page, request)
			}
		}
	}
}

// TestTheGuideHasAMenuAndASearch on every page.
func TestTheGuideHasAMenuAndASearch(t *testing.T) {
	t.Parallel()
	b := setup(t).browser()
	p := b.get("/docs/guide/webhooks")
	p.eachFieldHasALabel(t, "/docs/guide/webhooks")
	p.has(t, `<a href="/docs/guide/webhooks" aria-current="page">`, `href="/docs/guide/quickstart"`)
	found := b.get("/docs/guide?q=" + url.QueryEscape("webhook signature"))
	found.has(t, `<h2><a href="/docs/guide/webhooks">`)
	found.lacks(t, `<h2><a href="/docs/guide/quickstart">`)
	b.get("/docs/guide?q=zzzzqqq").has(t, "No pages match.")
	found = b.get("/docs/guide?q=" + url.QueryEscape("<script>"))
	if strings.Contains(found.body, "<script>") {
		t.Error("the search shows markup:", found.body)
	}
}

// TestSettingsHaveSectionsAndASearch: a search leaves only what matches.
func TestSettingsHaveSectionsAndASearch(t *testing.T) {
	t.Parallel()
	v := settingsView{Configured: []api.ConfiguredSetting{{Key: "smtp", Value: "x", Source: "default"},
		{Key: "http.listen", Value: ":3000", Source: "default"}, {Key: "http.tls.cert", Source: "file"}}}
	all := v.Configuration()
	if len(all) != 2 || all[0].Open || !all[1].Open || len(all[1].Config) != 2 {
		t.Errorf("%+v", all)
	}
	v.Q = "LISTEN"
	if all = v.Configuration(); len(all) != 1 || len(all[0].Config) != 1 || !all[0].Open {
		t.Errorf("%+v", all)
	}
}

// TestTokenPresets fill in the form.
func TestTokenPresets(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	p := b.get("/tokens?preset=newsletters")
	p.has(t, `value="lists" checked>`, `value="campaigns" checked>`, "submit messages over SMTP only")
	p.lacks(t, `value="api" checked>`)
	b.get("/tokens").lacks(t, " checked>")
	p = b.post("/tokens", url.Values{"description": {"x"}, "scopes": {"send"},
		"expires": {time.Now().AddDate(0, 1, 0).UTC().Format(time.DateOnly)}})
	p.has(t, `data-copy="made"`)
}
