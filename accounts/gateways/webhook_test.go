package gateways

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// TestTheSecretOfWebhooksIsMadeAndSealed where the choice is ours, and checked everywhere.
func TestTheSecretOfWebhooksIsMadeAndSealed(t *testing.T) {
	b := setup(t)
	made, err := b.Create(t.Context(), api.Gateway{Gateway: "p", Type: api.GatewayPostmark,
		API: &api.GatewayAPI{Key: "key"}})
	if err != nil || made.WebhookSecret == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	hook, err := b.Hook(t.Context(), "p")
	if err != nil || hook != (Hook{"postmark", made.WebhookSecret}) || testredis.Holds(t, b.db, hook.Secret) {
		t.Errorf("%+v, %v", hook, err)
	}
	if got := b.get(t, "p").API.WebhookSecret; got != records.Mask {
		t.Errorf("shown as %q", got)
	}
	for kind, secret := range map[api.GatewayType]string{"postmark": "short", "resend": "whsec_?",
		"ses":      "arn:aws:s3",
		"sendgrid": "bm8ga2V5", "http": "whsec_", "mailgun": "short"} {
		g := api.Gateway{Gateway: "g", Type: kind, API: &api.GatewayAPI{Key: "key", WebhookSecret: secret}}
		switch kind {
		case "ses":
			g.API.Region = "eu-west-1"
		case "mailgun":
			g.API.Domain = "mg.example.com"
		case "http":
			g.API.Key, g.API.URL = "", "https://mail.example.com/send"
		}
		_, err := b.Create(t.Context(), g)
		if diff := cmp.Diff([]string{"api.webhookSecret"}, testkit.WrongFields(t, err)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

// TestTheStateOfAWebhookIsOldAfterAChange, and a deleted gateway's is not stored.
func TestTheStateOfAWebhookIsOldAfterAChange(t *testing.T) {
	b := setup(t)
	b.create(t, api.Gateway{Gateway: "r", Type: api.GatewayResend, API: &api.GatewayAPI{Key: "key"}})
	if h := b.get(t, "r").Webhook; h == nil || h.State != api.HookUnset || h.Checked != nil {
		t.Errorf("new: %+v", h)
	}
	if _, err := b.NoteHook(t.Context(), "r", api.GatewayWebhook{State: api.HookOK}); err != nil {
		t.Fatal(err)
	}
	if h := b.get(t, "r").Webhook; h.State != api.HookOK || h.Checked == nil {
		t.Errorf("checked: %+v", h)
	}
	if _, err := b.Update(t.Context(), "r", api.GatewayPatch{Name: new("New")}); err != nil {
		t.Fatal(err)
	}
	if h := b.get(t, "r").Webhook; h.State != api.HookUnknown || h.Checked == nil {
		t.Errorf("changed: %+v", h)
	}
	if err := b.Delete(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.NoteHook(t.Context(), "r", api.GatewayWebhook{State: api.HookOK}); err != nil {
		t.Fatal(err)
	}
	b.create(t, api.Gateway{Gateway: "r", Type: api.GatewayResend, API: &api.GatewayAPI{Key: "key"}})
	if h := b.get(t, "r").Webhook; h.State != api.HookUnset {
		t.Errorf("again: %+v", h)
	}
}
