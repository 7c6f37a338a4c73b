package relays

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/internal/testredis"
)

// TestMaskedSecretsStayWhereTheyGo: who may change a gateway, but doesn't know its secrets, can't send them anywhere else.
func TestMaskedSecretsStayWhereTheyGo(t *testing.T) {
	plain := gateway("g")
	plain.Proxy = "http://u:pp@proxy.example.com:3128"
	token := oauthGateway("g")
	preset := api.Gateway{Gateway: "g", Preset: "gmail", User: "u", Pass: "p"}
	provider := token
	provider.OAuth2 = &api.OAuth2{Provider: "gmail", ClientID: "c", ClientSecret: "cs", RefreshToken: "rt", User: "u"}
	oauth := func(change func(o *api.OAuth2)) api.GatewayPatch {
		o := *token.OAuth2
		o.ClientSecret, o.RefreshToken = Mask, Mask
		change(&o)
		return api.GatewayPatch{OAuth2: &o}
	}
	tests := []struct {
		name   string
		before api.Gateway
		patch  api.GatewayPatch
		want   []string
	}{
		{"another port", plain, api.GatewayPatch{Port: ptr(25)}, nil},
		{"the host in capitals", plain, api.GatewayPatch{Host: ptr("SMTP.example.com")}, nil},
		{"another host", plain, api.GatewayPatch{Host: ptr("evil.example.net")}, []string{"pass"}},
		{"another host by preset", preset, api.GatewayPatch{Preset: ptr("sendgrid")}, []string{"pass"}},
		{"the host its preset means", preset, api.GatewayPatch{Host: ptr("smtp.gmail.com")}, nil},
		{"no proxy any more", plain, api.GatewayPatch{Proxy: ptr("")}, nil},
		{"another port of the proxy", plain, api.GatewayPatch{Proxy: ptr("http://u:******@proxy.example.com:8080")}, nil},
		{"another proxy", plain, api.GatewayPatch{Proxy: ptr("http://u:******@evil.example.net")}, []string{"pass", "proxy"}},
		{"another proxy with its own password", plain, api.GatewayPatch{Proxy: ptr("http://u:x@evil.example.net")}, []string{"pass"}},
		{"a proxy where there was none", preset, api.GatewayPatch{Proxy: ptr("socks5://evil.example.net")}, []string{"pass"}},
		{"a password where there was none", token, api.GatewayPatch{User: ptr("u"), Pass: ptr(Mask)}, []string{"pass"}},
		{"another scope", token, oauth(func(o *api.OAuth2) { o.Scope = "mail" }), nil},
		{"another path of the token server", token, oauth(func(o *api.OAuth2) { o.TokenURL = "https://login.example.com/v2" }), nil},
		{"another token server", token, oauth(func(o *api.OAuth2) { o.TokenURL = "https://evil.example.net/token" }),
			[]string{"oauth2.clientSecret", "oauth2.refreshToken"}},
		{"another provider", provider, api.GatewayPatch{OAuth2: &api.OAuth2{Provider: "office365", ClientID: "c", ClientSecret: Mask, RefreshToken: Mask, User: "u"}},
			[]string{"oauth2.clientSecret", "oauth2.refreshToken"}},
		{"any certificate will do", plain, api.GatewayPatch{TLS: &api.SMTPTLS{RejectUnauthorized: ptr(false)}}, []string{"pass"}},
		{"any certificate, but of one key", plain, api.GatewayPatch{TLS: &api.SMTPTLS{RejectUnauthorized: ptr(false), PinSHA256: "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}}, nil},
		{"a certificate of our own", plain, api.GatewayPatch{TLS: &api.SMTPTLS{MinVersion: "TLSv1.3"}}, nil},
		{"another relay for the access tokens", token, api.GatewayPatch{Host: ptr("evil.example.net")},
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
				before, after := ofGateway(tt.before).Secrets(), b.opened(t, "g")
				for _, s := range after {
					if got, want := s.get(), before.find(s.Field).get(); got != want && got != "" {
						t.Errorf("%s is %q, want %q", s.Field, got, want)
					}
				}
				return
			}
			if diff := cmp.Diff(tt.want, wrongFields(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// opened reads a gateway's secrets in clear.
func (b bundle) opened(t *testing.T, id string) Secrets {
	t.Helper()
	s, err := b.store.load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	all := ofGateway(s.Gateway).Secrets()
	if err := all.Open(b.ring, record(id)); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMaskedSecretOfANewGateway(t *testing.T) {
	b := setup(t)
	g := gateway("g")
	g.Pass, g.Proxy = Mask, "http://u:******@proxy.example.com"
	_, err := b.Create(t.Context(), g)
	if diff := cmp.Diff([]string{"pass", "proxy"}, wrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
}

func TestRouteDoesNotShowItsSecrets(t *testing.T) {
	g := oauthGateway("g")
	r := ofGateway(g).Route("gateway:g")
	r.Gateway, r.Relay.Password, r.Relay.AccessToken = "g", "pass battery", "token battery"
	text, err := json.Marshal(map[string]any{"route": r, "routes": []Route{r}})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "route", r, "routes", []Route{r})
	for _, shown := range []string{
		string(text), log.String(), fmt.Sprint(r), fmt.Sprintf("%+v", r), fmt.Sprintf("%#v", r), fmt.Sprintf("%v", &r), fmt.Sprintf("%+v", []Route{r}),
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
	if _, err := b.Update(t.Context(), "b", api.GatewayPatch{Name: ptr("N")}); err != nil {
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
	if r.OAuth.ClientSecret != "client battery" || r.OAuth.RefreshToken != "refresh battery" || r.Relay.Proxy != "socks5://p:proxy%20battery@proxy.example.com:1080" {
		t.Error("a secret was lost on the way")
	}
	text, err := json.Marshal(b.get(t, "b"))
	if err != nil || strings.Contains(string(text), "battery") || strings.Count(string(text), Mask) != 3 {
		t.Errorf("%s, %v", text, err)
	}
}

func TestSealedValueOpensNothingElsewhere(t *testing.T) {
	b := setup(t)
	b.create(t, oauthGateway("victim"))
	s, err := b.store.load(t.Context(), "victim")
	if err != nil {
		t.Fatal(err)
	}
	for _, stolen := range ofGateway(s.Gateway).Secrets() {
		if stolen.get() == "" {
			continue
		}
		for _, place := range []struct{ record, field string }{
			{"gateway:thief", stolen.Field}, {"account:victim", stolen.Field}, {"gateway:victim", "pass"},
		} {
			if plain, err := b.ring.Open(stolen.get(), place.record+":"+place.field); err == nil {
				t.Errorf("%s opens as %s of %s: %q", stolen.Field, place.field, place.record, plain)
			}
		}
	}
}

func TestChangedInstanceSecretBreaksOnlyWhatNeedsIt(t *testing.T) {
	b := setup(t)
	b.create(t, gateway("g"))
	later := process(t, b.url, ringOf(t, "another secret"))
	if _, err := later.Resolve(t.Context(), "g"); err == nil || !strings.Contains(err.Error(), "secret") || fault.Is(err, fault.NotFound) {
		t.Errorf("resolve: %v", err)
	}
	if exists, err := later.Exists(t.Context(), "g"); !exists || err != nil {
		t.Errorf("exists: %t, %v", exists, err)
	}
	if got := later.get(t, "g"); got.Pass != Mask {
		t.Errorf("%+v", got)
	}
	if _, err := later.Update(t.Context(), "g", api.GatewayPatch{Pass: ptr("entered again")}); err != nil {
		t.Fatal(err)
	}
	if got := later.resolve(t, "g").Relay.Password; got != "entered again" {
		t.Errorf("%q", got)
	}
}
