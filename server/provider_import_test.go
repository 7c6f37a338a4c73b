package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// An import of a provider's list is started with 202, shown while it waits for a worker, and in the audit
// log.
func TestImportOfAProvidersList(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	for _, g := range []api.Gateway{
		{Gateway: "main", Type: api.GatewayPostmark, API: &api.GatewayAPI{Key: "key"}},
		{Gateway: "jet", Type: api.GatewayMailjet, API: &api.GatewayAPI{Key: "key", Secret: "secret"}}} {
		g.Name = g.Gateway
		if _, err := api.CreateGateway.Do(ctx, w.client, g); err != nil {
			t.Fatal(err)
		}
	}
	const path = "/v1/gateway/main/suppressions/import"
	if got := w.do(t, http.MethodGet, path, adminToken, ""); got.status != http.StatusNotFound {
		t.Error(got.status, got.body)
	}
	got := w.do(t, http.MethodPost, path, adminToken, `{"account":"shop"}`)
	if got.status != http.StatusAccepted || !strings.Contains(got.body, `"state":"running"`) ||
		!strings.Contains(got.body, `"account":"shop"`) {
		t.Error(got.status, got.body)
	}
	again, err := api.ImportProviderList.Do(ctx, w.client, api.ProviderImportStart{}, "main")
	if err != nil || again.State != "running" || again.Account != "shop" {
		t.Errorf("%+v, %v", again, err)
	}
	if shown, err := api.GetProviderImport.Do(ctx, w.client, "main"); err != nil || shown.Started == nil {
		t.Errorf("%+v, %v", shown, err)
	}
	if got := w.do(t, http.MethodPost, path, boundToken, ""); got.status != http.StatusForbidden {
		t.Errorf("a token of an account: %d %s", got.status, got.body)
	}
	for gateway, want := range map[string]int{"jet": http.StatusBadRequest, "nobody": http.StatusNotFound} {
		got := w.do(t, http.MethodPost, "/v1/gateway/"+gateway+"/suppressions/import", adminToken, "")
		if got.status != want {
			t.Errorf("%s: %d %s", gateway, got.status, got.body)
		}
	}
	if !slices.ContainsFunc(w.entries(t, api.AuditQuery{}), func(e api.AuditEntry) bool {
		return e.Action == "POST /v1/gateway/{gateway}/suppressions/import" && e.Object != nil && e.Object.ID == "main"
	}) {
		t.Error("the audit log has no entry")
	}
}
