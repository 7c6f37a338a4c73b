package apiadmin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

const (
	address = "https://mail.example.com/webhooks/provider/x/shop"
	ours    = "a-secret-of-ours-0123456789"
)

// hookTypes are the types whose API has webhooks, with the secret that the gateway has before.
var hookTypes = map[string]string{"postmark": ours, "resend": "", "sendgrid": "", "mailgun": ours,
	"mailjet": ours, "sparkpost": ours, "brevo": ours, "mandrill": "", "ses": topic}

const topic = "arn:aws:sns:eu-west-1:123456789012:mail-events"

// providerOf starts a fake, and returns a client and the settings of an account there.
func providerOf(t *testing.T, kind string) (*Client, *testapi.Server, apisend.Target) {
	t.Helper()
	s, err := apisend.New(apisend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	fake := testapi.Start(t, kind, testapi.Options{Verified: []string{"example.com"}})
	target := apisend.Target{Type: api.GatewayType(kind), ID: "shop", URL: fake.URL, Key: "key"}
	switch kind {
	case "ses":
		target.Secret, target.Region, target.Pool = testapi.DefaultSecret, "eu-west-1", "postroom"
	case "mailjet", "postmark":
		target.Secret = testapi.DefaultSecret
	case "mailgun":
		target.Domain = "mg.example.com"
	}
	return New(s), fake, target
}

// TestWebhookOfEachProvider: it is created once, is right then, and its secret is known.
func TestWebhookOfEachProvider(t *testing.T) {
	for kind, secret := range hookTypes {
		t.Run(kind, func(t *testing.T) {
			c, fake, target := providerOf(t, kind)
			if state, err := c.Webhook(t.Context(), target, address, secret); err != nil || state != api.HookUnset {
				t.Fatalf("before: %s, %v", state, err)
			}
			got, err := c.SetWebhook(t.Context(), target, address, secret)
			if err != nil || got == "" || secret != "" && got != secret {
				t.Fatalf("created with %q, %v", got, err)
			}
			before := fmt.Sprint(fake.Webhooks())
			if state, err := c.Webhook(t.Context(), target, address, got); err != nil || state != api.HookOK {
				t.Errorf("after: %s, %v", state, err)
			}
			again, err := c.SetWebhook(t.Context(), target, address, got)
			if err != nil || again != got || fmt.Sprint(fake.Webhooks()) != before {
				t.Errorf("again: %q, %v\n%v\n%s", again, err, fake.Webhooks(), before)
			}
			if kind != "mailgun" && kind != "ses" && kind != "sparkpost" && kind != "brevo" { // those don't show it
				state, err := c.Webhook(t.Context(), target, address, "another-secret-0123456789")
				if err != nil || state != api.HookWrong {
					t.Errorf("with another secret: %s, %v", state, err)
				}
			}
		})
	}
}

// TestAWebhookThatLacksEventsIsChanged: the one with our address gets them, and another one stays as it is.
func TestAWebhookThatLacksEventsIsChanged(t *testing.T) {
	for kind, field := range map[string]string{"postmark": "Triggers", "resend": "events", "sendgrid": "bounce",
		"sparkpost": "events", "brevo": "events", "mandrill": "events", "ses": "Enabled"} {
		t.Run(kind, func(t *testing.T) {
			c, fake, target := providerOf(t, kind)
			const other = "https://other.example.com/hook"
			secret := hookTypes[kind]
			if kind != "ses" {
				if _, err := c.SetWebhook(t.Context(), target, other, secret); err != nil {
					t.Fatal(err)
				}
			}
			secret, err := c.SetWebhook(t.Context(), target, address, secret)
			if err != nil {
				t.Fatal(err)
			}
			all := fake.Webhooks()
			want, others := fmt.Sprint(all[len(all)-1]), fmt.Sprint(all[:len(all)-1])
			fake.SpoilWebhook(len(all)-1, field)
			if state, err := c.Webhook(t.Context(), target, address, secret); err != nil || state != api.HookWrong {
				t.Fatalf("spoiled: %s, %v", state, err)
			}
			if got, err := c.SetWebhook(t.Context(), target, address, secret); err != nil || got != secret {
				t.Fatalf("%q, %v", got, err)
			}
			all = fake.Webhooks()
			if got := fmt.Sprint(all[len(all)-1]); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			if got := fmt.Sprint(all[:len(all)-1]); got != others {
				t.Errorf("the other one is %s, was %s", got, others)
			}
		})
	}
}

// TestOtherPeoplesAddressesStay: Mailgun has lists of addresses, and Mailjet one for each event.
func TestOtherPeoplesAddressesStay(t *testing.T) {
	c, fake, target := providerOf(t, "mailgun")
	fake.AddWebhook(map[string]any{"id": "delivered", "urls": []string{"https://a.example"}})
	fake.AddWebhook(map[string]any{"id": "opened", "urls": []string{"https://b.example"}})
	if _, err := c.SetWebhook(t.Context(), target, address, ours); err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprint(fake.Webhooks())
	if !strings.Contains(all, "[https://a.example "+address+"]") ||
		!strings.Contains(all, "[https://b.example]") {
		t.Error(all)
	}
	full := []string{"https://a.example", "https://b.example", "https://c.example"}
	c, fake, target = providerOf(t, "mailgun")
	fake.AddWebhook(map[string]any{"id": "complained", "urls": full})
	if _, err := c.SetWebhook(t.Context(), target, address, ours); err == nil || len(fake.Webhooks()) != 1 {
		t.Errorf("three addresses: %v, %v", err, fake.Webhooks())
	}
	c, fake, target = providerOf(t, "mailjet")
	fake.AddWebhook(map[string]any{"ID": 7, "EventType": "spam", "Url": "https://u:pw@a.example",
		"Status": "alive"})
	_, err := c.SetWebhook(t.Context(), target, address, ours)
	if err == nil || !strings.Contains(err.Error(), "a.example") || strings.Contains(err.Error(), "pw") ||
		len(fake.Webhooks()) != 1 {
		t.Errorf("an event of another address: %v, %v", err, fake.Webhooks())
	}
}

// TestRefusals: a wrong key, a refusal and an answer that isn't the API's are errors that say so, and no
// secret is in them.
func TestRefusals(t *testing.T) {
	for kind, secret := range hookTypes {
		t.Run(kind, func(t *testing.T) {
			c, fake, target := providerOf(t, kind)
			wrong := target
			wrong.Key = "a-wrong-key-0123456789"
			_, err := c.SetWebhook(t.Context(), wrong, address, secret)
			e, ok := errors.AsType[*smtpsend.Error](err)
			if !ok || e.Verdict != smtpsend.Auth || strings.Contains(err.Error(), "wrong-key") {
				t.Errorf("a wrong key: %v", err)
			}
			for _, f := range []testapi.Fault{{Status: 403, Body: `{"message": "no ` + secret + `"}`},
				{Status: 200, Body: "<html>Welcome</html>"}, {Status: 502, Body: "<html>Bad gateway</html>"}} {
				fake.Fail(f)
				_, err := c.SetWebhook(t.Context(), target, address, secret)
				if _, ok := errors.AsType[*smtpsend.Error](err); !ok ||
					secret != "" && strings.Contains(err.Error(), secret) {
					t.Errorf("%d: %v", f.Status, err)
				}
				fake.Fail(f)
				if state, err := c.Webhook(t.Context(), target, address, secret); state != api.HookUnknown || err == nil {
					t.Errorf("%d: %s, %v", f.Status, state, err)
				}
			}
			if len(fake.Webhooks()) != 0 {
				t.Errorf("created %v", fake.Webhooks())
			}
		})
	}
}

// TestWhatIsLacking: the error says what to set.
func TestWhatIsLacking(t *testing.T) {
	for kind, word := range map[string]string{"mailgun": "signing key", "ses": "ARN", "http": address} {
		c, _, target := providerOf(t, kind)
		_, err := c.SetWebhook(t.Context(), target, address, "")
		if !errors.Is(err, ErrLacking) || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	c, _, target := providerOf(t, "ses")
	target.Pool = ""
	if _, err := c.SetWebhook(t.Context(), target, address, topic); !errors.Is(err, ErrLacking) {
		t.Error(err)
	}
}

// TestDomainsOfEachProvider: the fakes know one verified domain.
func TestDomainsOfEachProvider(t *testing.T) {
	for kind := range hookTypes {
		c, fake, target := providerOf(t, kind)
		want := map[string]string{"mailgun": "mg.example.com"}[kind]
		if want == "" {
			want = "example.com"
		}
		list, err := c.Domains(t.Context(), target)
		if err != nil || len(list) != 1 || list[0].Name != want || !list[0].Verified {
			t.Errorf("%s: %+v, %v", kind, list, err)
		}
		fake.Fail(testapi.Fault{Status: http.StatusOK, Body: "<html>"})
		if _, err := c.Domains(t.Context(), target); err == nil {
			t.Errorf("%s: a page counts as a list", kind)
		}
	}
	c, _, target := providerOf(t, "postmark")
	target.Secret = ""
	if _, err := c.Domains(t.Context(), target); !errors.Is(err, ErrLacking) {
		t.Errorf("without a token of the account: %v", err)
	}
}
