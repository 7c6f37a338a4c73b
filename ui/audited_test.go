package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
)

// entries returns the audit log, newest first, with what was noted.
func (w *world) entries() []api.AuditEntry {
	w.t.Helper()
	w.audit.Flush(w.t.Context())
	page, err := w.audit.List(w.t.Context(), api.AuditQuery{PageSize: 1000})
	w.must(err)
	return page.Entries
}

// TestWhatIsDoneOnPagesIsInTheAuditLog: each change and its result, with the session that made it.
func TestWhatIsDoneOnPagesIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	id := w.later(api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}}, Subject: "S", Text: "x"})
	login := w.entries()[0]
	if login.Action != "login" || login.Who.Kind != "session" || login.Who.Session == "" ||
		login.Who.TokenID != "bootstrap" {
		t.Fatalf("%+v", login)
	}
	for _, c := range []struct {
		path    string
		form    url.Values
		action  string
		object  api.AuditObject
		result  api.AuditResult
		changed string // a field of it
	}{
		{"/queues/bulk/pause", nil, "POST /queues/{queue}/pause", api.AuditObject{Kind: "queue", ID: "bulk"},
			api.AuditDone, ""},
		{"/messages/" + id + "/cancel", nil, "POST /messages/{id}/cancel", api.AuditObject{Kind: "message", ID: id},
			api.AuditDone, ""},
		{"/messages/" + id + "/retry", nil, "POST /messages/{id}/retry", api.AuditObject{Kind: "message", ID: id},
			api.AuditRefused, ""},
		{"/suppressions/add", url.Values{"whom": {"b@example.net"}, "reason": {"manual"}},
			"POST /suppressions/add",
			api.AuditObject{Kind: "suppression"}, api.AuditDone, "reason"},
		{"/settings", url.Values{"queueKeep": {"5"}, "was.queueKeep": {"x"}}, "POST /settings",
			api.AuditObject{Kind: "settings"}, api.AuditDone, "queueKeep"},
	} {
		before := len(w.entries())
		b.post(c.path, c.form)
		all := w.entries()
		e := all[0]
		if len(all) != before+1 || e.Action != c.action || *e.Object != c.object || e.Result != c.result ||
			e.Who != login.Who || (e.Reason != "") != (c.result == api.AuditRefused) ||
			c.changed != "" && (len(e.Changes) == 0 || !strings.Contains(all[0].Changes[0].Field, c.changed)) {
			t.Errorf("%s: %d entries more, %+v %+v", c.path, len(all)-before, e, e.Object)
		}
	}
	b.get("/audit").has(t, "POST /queues/{queue}/pause", login.Who.Session, "queueKeep", "refused",
		`aria-current="page"`)
	b.get("/audit?kind=queue").lacks(t, "/suppressions/add")
	b.get("/audit?verify=1").has(t, "the log is complete and unchanged")
	if p := b.get("/audit?kind=x&from=y"); p.status != http.StatusBadRequest {
		t.Errorf("a wrong filter: %d", p.status)
	}
	b.post("/logout", nil)
	if e := w.entries()[0]; e.Action != "logout" || e.Who != login.Who {
		t.Errorf("%+v", e)
	}
}

// TestTheDashboardIsInTheAuditLog: with the tasks that an action names.
func TestTheDashboardIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.program(adminToken)
	if p := b.do(http.MethodPost, DashboardPath+"/api/queues/bulk:pause",
		nil); p.status != http.StatusNoContent {
		t.Fatal(p.status)
	}
	e := w.entries()[0]
	if e.Action != "POST /admin/queues/bulk:pause" || e.Object.ID != "bulk" || e.Result != api.AuditDone ||
		e.Who.Kind != "token" {
		t.Errorf("%+v %+v", e, e.Object)
	}
	b.do(http.MethodPost, DashboardPath+"/api/queues/bulk/archived_tasks:batch_run",
		strings.NewReader(`{"task_ids":["t1"]}`))
	if e := w.entries()[0]; len(e.Changes) != 1 || e.Changes[0].After != "t1" {
		t.Errorf("%+v", e)
	}
	b.do(http.MethodDelete, DashboardPath+"/api/queues/bulk", nil)
	if e := w.entries()[0]; e.Result != api.AuditRefused {
		t.Errorf("%+v", e)
	}
}

// TestRefusedPagesAreInTheAuditLog: logins, tokens, and pages of admins. A browser without a session is none.
func TestRefusedPagesAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	operator, err := w.access.Create(t.Context(), api.TokenRequest{Description: "op",
		Scopes: []api.Scope{api.ScopeAPI}},
		time.Now())
	w.must(err)
	w.browser().get("/")
	if all := w.entries(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	w.browser().post("/login", url.Values{"token": {"wrong"}})
	w.program("wrong").get("/log")
	w.program(operator.Token).get("/settings")
	w.program(operator.Token).get("/audit")
	got := map[string]api.AuditEntry{}
	for _, e := range w.entries() {
		got[e.Action] = e
	}
	for action, who := range map[string]string{"login": "anonymous", "GET /log": "anonymous",
		"GET /settings": "op",
		"GET /audit":    "op"} {
		if e := got[action]; e.Result != api.AuditRefused || e.Who.Kind != who && e.Who.Name != who ||
			e.Reason == "" {
			t.Errorf("%s: %+v", action, e)
		}
	}
}
