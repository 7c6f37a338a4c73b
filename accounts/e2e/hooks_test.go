package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testapi"
)

// public tells Postroom its public address, which webhooks are posted to.
func (p *providers) public(t *testing.T) {
	t.Helper()
	_, err := api.UpdateSettings.Do(t.Context(), p.Client, api.Settings{ServiceURL: new(p.URL)})
	if err != nil {
		t.Fatal(err)
	}
}

// hook sets up the webhook of a gateway.
func (p *providers) hook(t *testing.T, id string) api.GatewayWebhook {
	t.Helper()
	h, err := api.SetGatewayWebhook.Do(t.Context(), p.Client, api.GatewayWebhookRequest{}, id)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// setAPI changes the API of a gateway.
func (p *providers) setAPI(t *testing.T, id string, change func(*api.GatewayAPI)) {
	t.Helper()
	info, err := api.GetGateway.Do(t.Context(), p.Client, id)
	if err != nil {
		t.Fatal(err)
	}
	change(info.API)
	_, err = api.UpdateGateway.Do(t.Context(), p.Client, api.GatewayPatch{API: &info.API}, id)
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheWebhookOfEachProvider is set up with one request. A bounce that the provider then reports is on the
// timeline of its message.
func TestTheWebhookOfEachProvider(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http", "postmark", "resend", "sendgrid", "mailgun", "mailjet", "sparkpost",
		"brevo", "mandrill"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := office(t, nil, kind)
			if _, err := api.SetGatewayWebhook.Do(t.Context(), p.Client, api.GatewayWebhookRequest{},
				kind); err == nil || !strings.Contains(err.Error(), "serviceUrl") {
				t.Errorf("without a public address: %v", err)
			}
			p.public(t)
			if kind == "mailgun" || kind == "http" {
				p.setAPI(t, kind, func(a *api.GatewayAPI) { a.WebhookSecret = testapi.DefaultSecret })
			}
			h, want := p.hook(t, kind), api.HookOK
			if kind == "http" {
				want = api.HookUnknown // the endpoint is the user's own
			}
			if h.State != want || !strings.HasPrefix(h.URL, p.URL+"/webhooks/provider/") || h.Checked == nil {
				t.Fatalf("%+v", h)
			}
			info, err := api.GetGateway.Do(t.Context(), p.Client, kind)
			if err != nil || info.Webhook == nil || info.Webhook.State != want || info.API.WebhookSecret != "******" {
				t.Errorf("%+v, %v", info.Webhook, err)
			}
			id := p.submit(t, "ann@example.net")
			if m := p.ended(t, id); m.Status != "sent" {
				t.Fatalf("%+v", m)
			}
			d := p.fakes[kind].Delivered()[0]
			statuses, err := p.fakes[kind].Report(t.Context(), testapi.Bounced, d)
			if kind == "http" {
				statuses = make([]int, 1)
				statuses[0], err = p.fakes[kind].Notify(t.Context(), h.URL, testapi.Bounced, d)
			}
			if err != nil || !slices.Equal(statuses, []int{http.StatusOK}) {
				t.Fatalf("%v, %v", statuses, err)
			}
			apptest.Eventually(t, "the bounce is on the timeline", func() bool {
				story, err := api.ListMessageEvents.Do(t.Context(), p.Client, id)
				return err == nil && story.Events[len(story.Events)-1].Event == "messageBounce"
			})
			checked, err := api.SetGatewayWebhook.Do(t.Context(), p.Client, api.GatewayWebhookRequest{Check: true},
				kind)
			if err != nil || checked.State != want {
				t.Errorf("checked: %+v, %v", checked, err)
			}
		})
	}
}

// TestGatewaysOfOneProviderHaveTheirOwnSecrets: neither accepts what is signed for the other one, and a new
// secret is in force immediately.
func TestGatewaysOfOneProviderHaveTheirOwnSecrets(t *testing.T) {
	t.Parallel()
	p := office(t, nil, "resend", "postmark")
	p.public(t)
	other := testapi.Start(t, "resend", testapi.Options{Secret: "whsec_b3RoZXIgc2VjcmV0IG9mIGFub3RoZXIgYWNjb3VudA=="})
	g := gatewayOf("resend", other.URL)
	g.Gateway = "other"
	p.add(t, g)
	first, second := p.hook(t, "resend"), p.hook(t, "other")
	p.ended(t, p.submit(t, "ann@example.net"))
	d := p.fakes["resend"].Delivered()[0]
	post := func(from *testapi.Server, to string) int {
		status, err := from.Notify(t.Context(), to, testapi.Delivered, d)
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	for name, row := range map[string]struct {
		from *testapi.Server
		to   string
		want int
	}{
		"its own":            {p.fakes["resend"], first.URL, 200},
		"the other's own":    {other, second.URL, 200},
		"the other's secret": {other, first.URL, 401},
		"of another type":    {p.fakes["resend"], p.URL + "/webhooks/provider/postmark/resend", 404},
		"an unknown gateway": {p.fakes["resend"], p.URL + "/webhooks/provider/resend/nobody", 404},
		"no such provider":   {p.fakes["resend"], p.URL + "/webhooks/provider/nobody/resend", 404},
		"not configured":     {p.fakes["resend"], p.URL + "/webhooks/provider/resend", 404},
	} {
		if got := post(row.from, row.to); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
	const before, after = "a-secret-of-before-0123", "a-secret-of-now-0123456"
	hook := p.URL + "/webhooks/provider/postmark/postmark?token="
	for _, secret := range []string{before, after} {
		p.setAPI(t, "postmark", func(a *api.GatewayAPI) { a.WebhookSecret = secret })
		if got := post(p.fakes["postmark"], hook+secret); got != 200 {
			t.Errorf("a new secret: %d", got)
		}
	}
	if got := post(p.fakes["postmark"], hook+before); got != 401 {
		t.Errorf("the old secret: %d", got)
	}
	const counted = `postroom_feedback_refused_total{provider="postmark",reason="unproven"} 1`
	if _, body := apptest.Look(t, p.URL+"/metrics", p.Token); !strings.Contains(body, counted) {
		t.Errorf("no %s in the metrics", counted)
	}
}

// TestAGatewayThatMovesGetsAnotherSecret: the old one proves nothing at the new place.
func TestAGatewayThatMovesGetsAnotherSecret(t *testing.T) {
	t.Parallel()
	p := office(t, nil, "postmark", "resend")
	p.public(t)
	p.hook(t, "postmark")
	p.hook(t, "resend")
	for kind, want := range map[string]string{"postmark": "******", "resend": ""} {
		elsewhere := testapi.Start(t, kind, testapi.Options{})
		p.setAPI(t, kind, func(a *api.GatewayAPI) { a.URL, a.Key = elsewhere.URL, "key" })
		info, err := api.GetGateway.Do(t.Context(), p.Client, kind)
		if err != nil || info.API.WebhookSecret != want || info.Webhook.State != api.HookUnknown {
			t.Errorf("%s: %q, %+v, %v", kind, info.API.WebhookSecret, info.Webhook, err)
		}
		if h := p.hook(t, kind); h.State != api.HookOK || len(elsewhere.Webhooks()) != 1 {
			t.Errorf("%s: %+v", kind, h)
		}
	}
}

// TestAProviderThatRefusesIsShown: the answer and the gateway say why, and domains are not listed.
func TestAProviderThatRefusesIsShown(t *testing.T) {
	t.Parallel()
	p := office(t, nil, "resend")
	p.public(t)
	p.fakes["resend"].Change(func(o *testapi.Options) {
		o.Restricted, o.Verified = true, []string{"example.com"}
	})
	if h := p.hook(t, "resend"); h.State != api.HookUnknown || !strings.Contains(h.Error, "restricted") {
		t.Errorf("%+v", h)
	}
	if _, err := api.ListGatewayDomains.Do(t.Context(), p.Client, "resend"); err == nil ||
		!strings.Contains(err.Error(), "restricted") {
		t.Errorf("domains: %v", err)
	}
	p.fakes["resend"].Change(func(o *testapi.Options) { o.Restricted = false })
	got, err := api.ListGatewayDomains.Do(t.Context(), p.Client, "resend")
	if err != nil || len(got.Domains) != 1 || got.Domains[0].Name != "example.com" || !got.Domains[0].Verified {
		t.Errorf("%+v, %v", got, err)
	}
}
