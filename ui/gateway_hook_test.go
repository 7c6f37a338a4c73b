package ui

import (
	"net/url"
	"testing"

	"github.com/postroom/postroom/internal/testapi"
)

// TestWebhookOfAGatewayIsSetUpOnItsPage: with one button, and the page says how it is. Another lists domains.
func TestWebhookOfAGatewayIsSetUpOnItsPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	fake := testapi.Start(t, "sendgrid", testapi.Options{Verified: []string{"example.com"}})
	b.submitForm("/gateways", url.Values{"gateway": {"main"}, "type": {"sendgrid"}, "api.key": {"key"},
		"api.url": {fake.URL}}).has(t, "The gateway main was added", "Create webhook",
		"/webhooks/provider/sendgrid/main")
	p := b.submitForm("/gateways/main/webhook", nil)
	p.has(t, "The provider reports to", "Fix webhook", `<span class="chip connected">ok</span>`)
	p.isSafe(t, "a gateway with its webhook")
	p.lacks(t, fake.VerificationKey())
	p = b.post("/gateways/main/domains", nil)
	p.has(t, "Sender domains", "example.com")
	p.isSafe(t, "the domains of a gateway")
	fake.Change(func(o *testapi.Options) { o.Key = "another" })
	b.post("/gateways/main/domains", nil).has(t, "authorization grant is invalid")
	b.submitForm("/gateways/main/webhook", nil).has(t, `class="flash bad"`, "authorization grant is invalid")
	if n := len(fake.Webhooks()); n != 1 {
		t.Errorf("%d webhooks", n)
	}
}
