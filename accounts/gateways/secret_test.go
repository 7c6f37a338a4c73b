package gateways

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// TestMaskedSecretsStayWhereTheyGo: who may change a gateway, but doesn't know its secrets, can't send them
// anywhere else.
func TestMaskedSecretsStayWhereTheyGo(t *testing.T) {
	plain := gateway("g")
	plain.Proxy = "http://u:pp@proxy.example.com:3128"
	token := oauthGateway("g")
	preset := api.Gateway{Gateway: "g", Preset: "gmail", User: "u", Pass: "p"}
	provider := token
	provider.OAuth2 = &api.OAuth2{Provider: "gmail", ClientID: "c", ClientSecret: "cs", RefreshToken: "rt",
		User: "u"}
	oauth := func(change func(o *api.OAuth2)) api.GatewayPatch {
		o := *token.OAuth2
		o.ClientSecret, o.RefreshToken = records.Mask, records.Mask
		change(&o)
		return api.GatewayPatch{OAuth2: new(&o)}
	}
	tests := []struct {
		name   string
		before api.Gateway
		patch  api.GatewayPatch
		want   []string
	}{
		{"another port", plain, api.GatewayPatch{Port: new(2525)}, []string{"pass"}},
		{"the host in capitals", plain, api.GatewayPatch{Host: new("SMTP.example.com")}, nil},
		{"another host", plain, api.GatewayPatch{Host: new("evil.example.net")}, []string{"pass"}},
		{"another host by preset", preset, api.GatewayPatch{Preset: new("sendgrid")}, []string{"pass"}},
		{"the host its preset means", preset, api.GatewayPatch{Host: new("smtp.gmail.com")}, []string{"pass"}},
		{"no proxy any more", plain, api.GatewayPatch{Proxy: new("")}, []string{"pass"}},
		{"another port of the proxy", plain, api.GatewayPatch{Proxy: new("http://u:******@proxy.example.com:8080")},
			[]string{"pass", "proxy"}},
		{"another kind of proxy", plain, api.GatewayPatch{Proxy: new("socks5://u:******@proxy.example.com:3128")},
			[]string{"pass", "proxy"}},
		{"TLS from the first byte", plain, api.GatewayPatch{Secure: new(true)}, []string{"pass"}},
		{"another authority", plain, api.GatewayPatch{TLS: new(&api.SMTPTLS{CA: authority(t)})},
			[]string{"pass"}},
		{"another pinned key", plain, api.GatewayPatch{
			TLS: new(&api.SMTPTLS{PinSHA256: "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="})}, []string{"pass"}},
		{"another proxy", plain, api.GatewayPatch{Proxy: new("http://u:******@evil.example.net")},
			[]string{"pass", "proxy"}},
		{"another proxy with its own password", plain, api.GatewayPatch{Proxy: new("http://u:x@evil.example.net")},
			[]string{"pass"}},
		{"a proxy where there was none", preset, api.GatewayPatch{Proxy: new("socks5://evil.example.net")},
			[]string{"pass"}},
		{"a password where there was none", token, api.GatewayPatch{User: new("u"), Pass: new(records.Mask)},
			[]string{"pass"}},
		{"another scope", token, oauth(func(o *api.OAuth2) { o.Scope = "mail" }), nil},
		{"another path of the token server", token,
			oauth(func(o *api.OAuth2) { o.TokenURL = "https://login.example.com/v2" }),
			[]string{"oauth2.clientSecret", "oauth2.refreshToken"}},
		{"another token server", token,
			oauth(func(o *api.OAuth2) { o.TokenURL = "https://evil.example.net/token" }),
			[]string{"oauth2.clientSecret", "oauth2.refreshToken"}},
		{"another provider", provider, api.GatewayPatch{
			OAuth2: new(&api.OAuth2{Provider: "office365", ClientID: "c", ClientSecret: records.Mask,
				RefreshToken: records.Mask, User: "u"})},
			[]string{"oauth2.clientSecret", "oauth2.refreshToken"}},
		{"any certificate will do", plain, api.GatewayPatch{TLS: new(&api.SMTPTLS{RejectUnauthorized: new(false)})},
			[]string{"pass"}},
		{"any certificate, but of one key", plain, api.GatewayPatch{
			TLS: new(&api.SMTPTLS{RejectUnauthorized: new(false),
				PinSHA256: "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="})}, []string{"pass"}},
		{"a certificate of our own", plain, api.GatewayPatch{TLS: new(&api.SMTPTLS{MinVersion: "TLSv1.3"})}, nil},
		{"another relay for the access tokens", token, api.GatewayPatch{Host: new("evil.example.net")},
			[]string{"oauth2.clientSecret", "oauth2.refreshToken"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			b.create(t, tt.before)
			_, err := b.Update(t.Context(), "g", tt.patch)
			if tt.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				kept, err := b.store.Open(t.Context(), "g")
				if err != nil || kept.Broken != nil {
					t.Fatal(err, kept.Broken)
				}
				before, after := secretsOf(tt.before), secretsOf(kept.Value)
				for field, got := range after {
					if want := before[field]; got != want && got != "" {
						t.Errorf("%s is %q, want %q", field, got, want)
					}
				}
				return
			}
			if diff := cmp.Diff(tt.want, testkit.WrongFields(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// authority returns a certificate of an authority, as PEM.
func authority(t *testing.T) string {
	t.Helper()
	cert, _, err := testkit.MakeCertificate("ca.example.com")
	if err != nil {
		t.Fatal(err)
	}
	return string(cert)
}

// secretsOf gives a gateway's secrets by their fields.
func secretsOf(g api.Gateway) map[string]string {
	all := map[string]string{}
	for _, s := range gatewaySecrets(&g) {
		all[s.Field] = s.Get()
	}
	return all
}

func TestMaskedSecretOfANewGateway(t *testing.T) {
	b := setup(t)
	g := gateway("g")
	g.Pass, g.Proxy = records.Mask, "http://u:******@proxy.example.com"
	_, err := b.Create(t.Context(), g)
	if diff := cmp.Diff([]string{"pass", "proxy"}, testkit.WrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
}

func TestRouteDoesNotShowItsSecrets(t *testing.T) {
	g := oauthGateway("g")
	r := ofGateway(g).Relay("gateway:g")
	r.Gateway, r.SMTP.Password, r.SMTP.AccessToken = "g", "pass battery", "token battery"
	text, err := json.Marshal(map[string]any{"route": r, "routes": []Relay{r}})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "route", r, "routes", []Relay{r})
	for _, shown := range []string{
		string(text), log.String(), fmt.Sprint(r), fmt.Sprintf("%+v", r), fmt.Sprintf("%#v", r),
		fmt.Sprintf("%v", &r), fmt.Sprintf("%+v", []Relay{r}),
	} {
		if strings.Contains(shown, "battery") || !strings.Contains(shown, "g") {
			t.Errorf("shown: %s", shown)
		}
	}
}

func TestSecretsAreSealedInRedis(t *testing.T) {
	b := setup(t)
	a := gateway("a")
	a.Name, a.Pass = "findable name", "correct horse"
	b.create(t, a)
	b.create(t, oauthGateway("b"))
	if _, err := b.Update(t.Context(), "b", api.GatewayPatch{Name: new("N")}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		b.resolve(t, id)
		b.Outcome(t.Context(), id, 0, errors.New("refused"))
	}
	if !testredis.Holds(t, b.db, "findable name") {
		t.Fatal("the search finds nothing at all")
	}
	for _, secret := range []string{"correct horse", "battery"} {
		if testredis.Holds(t, b.db, secret) {
			t.Errorf("%q is in Redis", secret)
		}
	}
	r := b.resolve(t, "b")
	if r.OAuth.ClientSecret != "client battery" || r.OAuth.RefreshToken != "refresh battery" ||
		r.SMTP.Proxy != "socks5://p:proxy%20battery@proxy.example.com:1080" {
		t.Error("a secret was lost on the way")
	}
	text, err := json.Marshal(b.get(t, "b"))
	if err != nil || strings.Contains(string(text), "battery") ||
		strings.Count(string(text), records.Mask) != 3 {
		t.Errorf("%s, %v", text, err)
	}
}

func TestChangedInstanceSecretBreaksOnlyWhatNeedsIt(t *testing.T) {
	b := setup(t)
	b.create(t, gateway("g"))
	later := process(t, b.url, testkit.Ring(t, "another secret"))
	if _, err := later.Resolve(t.Context(), "g"); err == nil || !strings.Contains(err.Error(), "secret") ||
		fault.Is(err, fault.NotFound) {
		t.Errorf("resolve: %v", err)
	}
	if exists, err := later.Exists(t.Context(), "g"); !exists || err != nil {
		t.Errorf("exists: %t, %v", exists, err)
	}
	if got := later.get(t, "g"); got.Pass != records.Mask {
		t.Errorf("%+v", got)
	}
	if _, err := later.Update(t.Context(), "g", api.GatewayPatch{Pass: new("entered again")}); err != nil {
		t.Fatal(err)
	}
	if got := later.resolve(t, "g").SMTP.Password; got != "entered again" {
		t.Errorf("%q", got)
	}
}

func TestReseal(t *testing.T) {
	before := setup(t)
	open := gateway("open")
	open.User, open.Pass = "", ""
	for _, g := range []api.Gateway{gateway("a"), oauthGateway("b"), open} {
		before.create(t, g)
	}
	before.Outcome(t.Context(), "a", 1, nil)
	during := process(t, before.url, testkit.Ring(t, "new", "secret"))
	during.create(t, gateway("c"))
	want := during.get(t, "a")
	if n, err := during.Reseal(t.Context()); n != 2 || err != nil {
		t.Errorf("%d, %v, want the two with secrets of before", n, err)
	}
	if n, err := during.Reseal(t.Context()); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	if got := during.get(t, "a"); got.State != want.State || got.Deliveries != 1 ||
		!got.Updated.Equal(want.Updated) {
		t.Errorf("%+v, want %+v", got, want)
	}
	after := process(t, before.url, testkit.Ring(t, "new"))
	if got := after.resolve(t, "a").SMTP.Password; got != "correct horse" {
		t.Errorf("%q", got)
	}
	if r := after.resolve(t, "b"); r.OAuth.RefreshToken != "refresh battery" ||
		r.SMTP.Proxy != oauthGateway("b").Proxy {
		t.Error("a secret was lost")
	}
}
