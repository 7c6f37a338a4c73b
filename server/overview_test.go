package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// TestOverview: a bound token gets what its account may know.
func TestOverview(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.sent(t, "acme")
	w.parts.dead(t, "other")
	w.parts.token(t, "acme-outbox", api.TokenRequest{Account: "acme", Scopes: []api.Scope{api.ScopeOutbox}})
	w.parts.token(t, "measures", api.TokenRequest{Scopes: []api.Scope{api.ScopeMetrics}})
	for _, row := range []struct {
		name, token, query string
		status             int
		words              string
	}{
		{"all", adminToken, "", 200, `"dead":1`},
		{"alerts", adminToken, "", 200, `"playbook":"/playbooks`},
		{"why", "measures", "?days=30", 200, `"reasons":[{"text":"550 No","messages":1,`},
		{"one account", adminToken, "?account=other", 200, `"account":"other"`},
		{"its own", "acme-outbox", "", 200, `"account":"acme"`},
		{"no failures of others", "acme-outbox", "?days=7", 200, `"failures":{"total":0,"counted":0,"reasons":[]}`},
		{"no alerts, which are the instance's", "acme-outbox", "", 200, `"alerts":[]`},
		{"of another", "acme-outbox", "?account=other", 403, "Unauthorized account"},
		{"two days", adminToken, "?days=2", 400, "days"},
	} {
		got := w.do(t, http.MethodGet, "/v1/overview"+row.query, w.parts.secret(row.token), "")
		if got.status != row.status || !strings.Contains(got.body, row.words) {
			t.Errorf("%s: %d %s", row.name, got.status, got.body)
		}
	}
}
