package ui

import (
	"net/url"
	"testing"

	"github.com/postroom/postroom/api"
)

// The page of a gateway starts an import of its provider's suppression list, and shows how far it is.
func TestGatewayImportsTheProvidersList(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, g := range []api.Gateway{
		{Gateway: "main", Type: api.GatewayPostmark, API: &api.GatewayAPI{Key: "key"}},
		{Gateway: "jet", Type: api.GatewayMailjet, API: &api.GatewayAPI{Key: "key", Secret: "secret"}}} {
		g.Name = g.Gateway
		_, err := w.gateways.Create(t.Context(), g)
		w.must(err)
	}
	b := w.operator()
	b.get("/gateways/jet").lacks(t, "Suppressions at the provider")
	p := b.get("/gateways/main")
	p.eachFieldHasALabel(t, "/gateways/main")
	p.has(t, "No import yet.", "postroom gateway suppressions main")
	p = b.submitForm("/gateways/main/suppressions", url.Values{"account": {"shop"}})
	p.has(t, "The import has started.", "running", "for account shop", "0 read")
	p.isSafe(t, "/gateways/main")
	b.submitForm("/gateways/jet/suppressions", url.Values{}).has(t, `class="flash bad"`, "of type mailjet")
}
