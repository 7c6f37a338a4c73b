package server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// entries returns the audit log, newest first, with what was noted.
func (w *world) entries(t *testing.T, q api.AuditQuery) []api.AuditEntry {
	t.Helper()
	w.parts.Audit.Flush(t.Context())
	page, err := api.ListAudit.Do(t.Context(), w.client, q)
	if err != nil {
		t.Fatal(err)
	}
	return page.Entries
}

// TestEveryRouteSaysWhetherItIsAudited: a new route is a decision.
func TestEveryRouteSaysWhetherItIsAudited(t *testing.T) {
	t.Parallel()
	for _, g := range setup(t).routes() {
		for _, r := range g.routes {
			if (r.audited.kind == "") == (r.audited.why == "") {
				t.Errorf("%s %s: %+v", r.method, r.path, r.audited)
			}
			if p := r.audited.param; p != "" && !strings.Contains(r.path, "{"+p+"}") {
				t.Errorf("%s %s has no parameter %s", r.method, r.path, p)
			}
		}
	}
}

// TestEveryChangeHasItsEntry calls every route that changes something: one entry each, with actor and object.
func TestEveryChangeHasItsEntry(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.http.Transport = w.http.Transport.(*checked).inner // the file of an import is empty
	w.parts.person(t, "ann", api.RoleViewer, "acme")
	last := func() (last api.AuditEntry) {
		for _, e := range w.entries(t, api.AuditQuery{PageSize: 1}) {
			last = e
		}
		return last
	}
	for _, g := range w.routes() {
		for _, r := range g.routes {
			before := last().Seq
			as, by := adminToken, "bootstrap"
			if r.right.self && r.right.scope == "" {
				as, by = "ann", "ann"
			}
			reply := w.call(t, r, as)
			e := last()
			if r.audited.kind == "" {
				if e.Seq != before {
					t.Errorf("%s %s: %+v", r.method, r.path, e)
				}
				continue
			}
			if e.Seq != before+1 || e.Action != r.method+" "+r.path || e.Result != api.AuditDone ||
				e.Who.TokenID != by && e.Who.Name != by || e.Who.Address != "127.0.0.1" ||
				e.Object.Kind != r.audited.kind ||
				e.Request != reply.header.Get("X-Request-Id") || r.audited.param != "" && e.Object.ID == "" {
				t.Errorf("%s %s: %d entries more, %+v %+v", r.method, r.path, e.Seq-before, e, e.Object)
			}
		}
	}
	v, err := api.VerifyAudit.Do(t.Context(), w.client, api.AuditVerifyQuery{})
	if err != nil || !v.Intact || len(v.Unfinished) > 0 {
		t.Errorf("%+v, %v", v, err)
	}
	v, err = api.VerifyAudit.Do(t.Context(), w.client, api.AuditVerifyQuery{Seq: v.Head.Seq + 1,
		Hash: v.Head.Hash})
	if err != nil || v.Intact {
		t.Errorf("with a later head: %+v, %v", v, err)
	}
	var out bytes.Buffer
	if err := api.ExportAudit.Do(t.Context(), w.client, api.AuditQuery{Kind: "gateway"}, &out); err != nil ||
		strings.Count(out.String(), "\n") < 3 || strings.Contains(out.String(), `"kind":"account"`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestEntriesShowBeforeAndAfter: for records, with secrets masked.
func TestEntriesShowBeforeAndAfter(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.token(t, "ops", api.TokenRequest{Scopes: []api.Scope{api.ScopeAdmin}})
	const secret = "correct-horse"
	for _, c := range []struct {
		method, path, body string
		object             api.AuditObject
		want               []api.AuditChange
	}{
		{"POST", "/v1/account",
			`{"account":"a1","email":"a@example.com","smtp":{"host":"h","port":25,"auth":{"user":"u","pass":"` +
				secret + `"}}}`, api.AuditObject{Kind: "account", ID: "a1"}, []api.AuditChange{
				{Field: "email", After: "a@example.com"}, {Field: "smtp.auth.pass", After: "******"}}},
		{"PUT", "/v1/account/a1",
			`{"name":"N","smtp":{"host":"h","port":25,"auth":{"user":"u","pass":"new-` + secret + `"}}}`,
			api.AuditObject{Kind: "account", ID: "a1"}, []api.AuditChange{{Field: "name", After: "N"},
				{Field: "smtp.auth.pass", Before: "******", After: "******"}}},
		{"POST", "/v1/settings", `{"webhooksCustomHeaders":[{"key":"X-A","value":"` + secret + `"}],"queueKeep":7}`,
			api.AuditObject{Kind: "settings"}, []api.AuditChange{{Field: "queueKeep", Before: "0", After: "7"},
				{Field: "webhooksCustomHeaders[0].value", After: "******"}}},
		{"PUT", "/v1/settings/queue/bulk", `{"paused":true}`, api.AuditObject{Kind: "queue", ID: "bulk"},
			[]api.AuditChange{{Field: "paused", Before: "false", After: "true"}}},
		{"POST", "/v1/suppressions", `{"email":"x@example.com","account":"a1"}`,
			api.AuditObject{Kind: "suppression", Account: "a1"}, []api.AuditChange{{Field: "email",
				After: "x@example.com"}}},
		{"DELETE", "/v1/account/a1", "", api.AuditObject{Kind: "account", ID: "a1"},
			[]api.AuditChange{{Field: "name", Before: "N"}}},
	} {
		if got := w.do(t, c.method, c.path, "ops", c.body); got.status != 200 {
			t.Fatalf("%s %s: %+v", c.method, c.path, got)
		}
		e := w.entries(t, api.AuditQuery{PageSize: 1})[0]
		if diff := cmp.Diff(c.object, *e.Object); diff != "" || e.Who.Name != "ops" || e.Who.Kind != "token" {
			t.Errorf("%s %s: %+v %s", c.method, c.path, e, diff)
		}
		for _, want := range c.want {
			if !contains(e.Changes, want) {
				t.Errorf("%s %s: %+v is missing in %+v", c.method, c.path, want, e.Changes)
			}
		}
	}
	if all := marshal(t, w.entries(t, api.AuditQuery{})); strings.Contains(all, secret) {
		t.Error(all)
	}
}

func contains(all []api.AuditChange, want api.AuditChange) bool {
	for _, c := range all {
		if c == want {
			return true
		}
	}
	return false
}

// TestRefusalsAreInTheLog: of unauthenticated clients, of tokens without the right, and of objects of others.
func TestRefusalsAreInTheLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.do(t, "GET", "/v1/outbox", "stolen", "")
	w.do(t, "POST", "/v1/account", "", `{}`)
	w.do(t, "GET", "/v1/settings", boundToken, "")
	w.do(t, "GET", "/v1/account/other", boundToken, "")
	w.do(t, "DELETE", "/v1/templates/account/other?force=true", boundToken, "")
	got := map[string]api.AuditEntry{}
	for _, e := range w.entries(t, api.AuditQuery{Result: api.AuditRefused}) {
		got[e.Action] = e
	}
	for action, want := range map[string][2]string{
		"GET /v1/outbox": {"anonymous", "Bad token"}, "POST /v1/account": {"anonymous", "Missing authentication"},
		"GET /v1/settings": {boundToken, "Unauthorized account"}, "GET /v1/account/{account}": {boundToken,
			"Unauthorized account"},
		"DELETE /v1/templates/account/{account}": {boundToken, ""},
	} {
		e := got[action]
		if e.Who.Kind != want[0] && e.Who.Name != want[0] || !strings.Contains(e.Reason, want[1]) ||
			e.Who.Address != "127.0.0.1" {
			t.Errorf("%s: %+v", action, e)
		}
	}
}

// TestNoChangeWhileTheLogCantBeWritten: the account is not made, and the answer says to try again.
func TestNoChangeWhileTheLogCantBeWritten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.failWith(&net.OpError{Op: "dial", Err: errors.New("refused")})
	got := w.do(t, "POST", "/v1/account", adminToken,
		`{"account":"a1","email":"a@example.com","smtp":{"host":"h","port":25}}`)
	w.parts.failWith(nil)
	if got.status != http.StatusServiceUnavailable {
		t.Errorf("%+v", got)
	}
	if _, err := w.parts.Accounts.Get(context.Background(), "a1"); err == nil {
		t.Error("it was made")
	}
}

// TestTheAuditLogHasPagesAsAllListsDo: pageSize is their size, and another name for it is refused.
func TestTheAuditLogHasPagesAsAllListsDo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, name := range []string{"a", "b", "c"} {
		w.do(t, http.MethodPost, "/v1/lists", adminToken, `{"name":"`+name+`"}`)
	}
	for query, status := range map[string]int{"pageSize=2": http.StatusOK, "pageSize=0": http.StatusBadRequest,
		"limit=2": http.StatusBadRequest} {
		got := w.do(t, http.MethodGet, "/v1/audit?"+query, adminToken, "")
		if got.status != status || status == http.StatusOK && strings.Count(got.body, `"seq"`) != 2 {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}
