package main

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testapi"
)

// TestAProviderInOneCommand adds a gateway with its webhook, lists its domains, and lets doctor look.
func TestAProviderInOneCommand(t *testing.T) {
	p := apptest.Start(t, nil)
	_, err := api.UpdateSettings.Do(t.Context(), p.Client, api.Settings{ServiceURL: &p.URL})
	if err != nil {
		t.Fatal(err)
	}
	fake := testapi.Start(t, "resend", testapi.Options{Verified: []string{"example.com"}})
	t.Setenv("PROVIDER_KEY", "key")
	to := []string{"--url", p.URL, "--token", p.Token}
	type words []string
	for _, row := range []struct {
		args words
		code int
		want string
	}{
		{words{"gateway", "add", "orders", "--type", "resend", "--key-file", "env:PROVIDER_KEY", "--api-url", fake.URL,
			"--webhook"}, 0, "webhook ok, " + p.URL + "/webhooks/provider/resend/orders"},
		{words{"gateway", "show", "orders"}, 0, "webhook url"},
		{words{"gateway", "webhook", "orders", "--check"}, 0, "gateway orders: webhook ok"},
		{words{"gateway", "domains", "orders"}, 0, "example.com"},
		{words{"gateway", "add", "plain", "--type", "resend", "--key-file", "env:PROVIDER_KEY", "--api-url", fake.URL}, 0,
			"gateway plain: added"},
		{words{"gateway", "webhook", "plain", "--check"}, 1, "gateway plain: webhook unset"},
	} {
		code, out, errs := command(t, append(row.args, to...)...)
		if code != row.code || !strings.Contains(out, row.want) {
			t.Errorf("%v: code %d, %s%s", row.args, code, out, errs)
		}
	}
	if n := len(fake.Webhooks()); n != 1 {
		t.Errorf("%d webhooks", n)
	}
	x := &exam{client: p.Client}
	var said []string
	for _, f := range x.gateways(t.Context()) {
		said = append(said, f.Status+" "+f.Message)
	}
	has(t, strings.Join(said, "\n"), "ok gateway orders (resend) takes the key",
		"warn gateway orders (resend): a message can't turn off", "ok gateway orders (resend) reports to "+p.URL,
		"warn gateway plain (resend): webhook unset")
	fake.Change(func(o *testapi.Options) { o.Key = "another" })
	found := x.gateways(t.Context())
	if len(found) != 2 || found[0].Status != fail || !strings.Contains(found[0].Message, "API key is invalid") {
		t.Errorf("with a wrong key: %+v", found)
	}
}
