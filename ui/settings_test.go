package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// formOf returns the fields of the settings' form as a browser would send them.
func formOf(p page) url.Values {
	form := p.hidden()
	for _, m := range regexp.MustCompile(`<input id="(\w+)" name="\w+" value="([^"]*)"`).FindAllStringSubmatch(
		p.text(), -1) {
		form.Set(m[1], m[2])
	}
	for _, m := range regexp.MustCompile(`(?s)<textarea id="(\w+)"[^>]*>(.*?)</textarea>`).FindAllStringSubmatch(
		p.text(), -1) {
		form.Set(m[1], strings.ReplaceAll(m[2], "\n", "\r\n"))
	}
	for _, m := range regexp.MustCompile(`<select id="(\w+)".*?<option selected>(\w+)</option>`).FindAllStringSubmatch(
		p.text(), -1) {
		form.Set(m[1], m[2])
	}
	return form
}

func (w *world) setSettings(s api.Settings) {
	w.t.Helper()
	_, err := w.settings.Update(w.t.Context(), s)
	w.must(err)
}

func TestSettingsAreShownAndChanged(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.setSettings(api.Settings{WebhooksCustomHeaders: &[]api.CustomHeader{{Key: "X-One", Value: "1"},
		{Key: "X-Two", Value: "<two>"}}})
	b := w.operator()
	p := b.get("/settings")
	p.isSafe(t, "/settings")
	p.has(t, `href="/settings" aria-current="page"`, "Default number of attempts before a message fails", "1 to 100.",
		"Default: <code>7</code>", "X-One: ******\nX-Two: ******")
	p.lacks(t, "<two>")
	form := formOf(p)
	for _, s := range new(api.Settings).List() {
		if !form.Has(s.Name) || !form.Has("was."+s.Name) || s.Doc == "" {
			t.Errorf("the form lacks %s, or what it means", s.Name)
		}
	}
	b.submitForm("/settings", form).has(t, "Nothing was changed.")

	form.Set("deliveryAttempts", "3")
	form.Set("trackOpens", "true")
	form.Set("webhookEvents", "messageSent\r\nmessageFailed\r\n")
	w.setSettings(api.Settings{QueueKeep: new(12)}) // by somebody else, meanwhile
	b.submitForm("/settings", form).has(t, "Changed: webhookEvents, deliveryAttempts, trackOpens.")
	got, err := w.settings.Get(t.Context())
	w.must(err)
	if *got.DeliveryAttempts != 3 || !*got.TrackOpens || len(*got.WebhookEvents) != 2 || *got.QueueKeep != 12 ||
		len(*got.WebhooksCustomHeaders) != 2 {
		t.Errorf("the settings are now %+v", got.List())
	}
	form = formOf(b.get("/settings"))
	form.Set("webhooksCustomHeaders", "x-two: ******\r\nX-Three: 3\r\n")
	b.submitForm("/settings", form).has(t, "Changed: webhooksCustomHeaders.")
	got, err = w.settings.Get(t.Context())
	w.must(err)
	want := []api.CustomHeader{{Key: "X-Two", Value: "<two>"}, {Key: "X-Three", Value: "3"}}
	if diff := cmp.Diff(want, *got.WebhooksCustomHeaders); diff != "" {
		t.Error(diff)
	}
	if n := w.db.Client().HLen(t.Context(), "postroom:{0}:settings").Val(); n != 5 {
		t.Errorf("%d settings are stored, want the five that were changed", n)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	form := formOf(b.get("/settings"))
	form.Set("deliveryAttempts", "often")
	form.Set("queueKeep", "100001")
	form.Set("webhookEvents", "messageSent messageLost")
	form.Set("webhooksCustomHeaders", "Host: evil\nX-New: ******")
	form.Set("serviceUrl", "https://mail.example.com")
	p := b.post("/settings", form)
	if p.status != http.StatusBadRequest {
		t.Errorf("answered %d", p.status)
	}
	p.has(t, "deliveryAttempts must be a whole number.", "queueKeep must be 0 to 100000.",
		"webhookEvents[1] must be * or one of", "webhooksCustomHeaders[0].key can't be set, because Postroom sets it.",
		"webhooksCustomHeaders has a header without a stored value",
		`value="often"`, `value="https://mail.example.com"`)
	if got := w.settings.Current(); got.ServiceURL != "" || got.DeliveryAttempts != 7 {
		t.Errorf("something was changed: %+v", got)
	}
	again := formOf(p) // the form that was refused, put right
	for name, value := range map[string]string{"deliveryAttempts": "4", "queueKeep": "0", "webhookEvents": "*",
		"webhooksCustomHeaders": ""} {
		again.Set(name, value)
	}
	b.submitForm("/settings", again).has(t, "Changed: serviceUrl, deliveryAttempts.")
}

func TestSettingsAreForAdmins(t *testing.T) {
	t.Parallel()
	w := setup(t)
	made, err := w.access.Create(t.Context(), api.TokenRequest{Description: "api"}, time.Now())
	w.must(err)
	b := w.browser()
	if p := b.post("/login", url.Values{"token": {made.Token}}); p.status != http.StatusSeeOther {
		t.Fatalf("login answered %d", p.status)
	}
	b.get("/").lacks(t, `href="/settings"`)
	for method, p := range map[string]page{"GET": b.get("/settings"),
		"POST": b.post("/settings", url.Values{"deliveryAttempts": {"3"}})} {
		if p.status != http.StatusForbidden {
			t.Errorf("%s answered %d", method, p.status)
		}
		p.has(t, "This page needs a token with the scope admin")
	}
	if n := w.settings.Current().DeliveryAttempts; n != 7 {
		t.Errorf("changed to %d", n)
	}
}

func TestTheConfigurationIsShownToAdmins(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.operator().get("/settings").lacks(t, `id="configuration"`)
	u, err := New(w.ui.Parts, Options{Configuration: []api.ConfiguredSetting{
		{Key: "smtp", Value: "smtp://shop:******@relay.test", Source: "POSTROOM_SMTP", Env: "POSTROOM_SMTP",
			Secret: true},
		{Key: "http.tls.cert", Empty: "no TLS" + evilText, Source: "default"}}})
	w.must(err)
	r := httptest.NewRequest(http.MethodGet, "/settings", nil)
	r.Header.Set("Authorization", "Bearer "+adminToken)
	rec := httptest.NewRecorder()
	u.ServeHTTP(rec, r)
	p := page{rec.Code, rec.Header(), rec.Body.String()}
	p.isSafe(t, "/settings")
	p.has(t, `id="configuration"`, "smtp://shop:******@relay.test", "<strong>POSTROOM_SMTP</strong>", "no TLS",
		"GET /v1/settings/configuration · postroom config")
}
