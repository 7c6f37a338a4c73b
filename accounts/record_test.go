package accounts

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// secretive is an account that has all secrets, each with the word battery in it, but for the password.
func secretive(t *testing.T, id string) api.Account {
	t.Helper()
	key, err := dkim.Generate("ed25519", 0)
	if err != nil {
		t.Fatal(err)
	}
	a := account(id)
	a.SMTP.Auth = nil
	a.OAuth2 = &api.OAuth2{Provider: "gmail", ClientID: "c", ClientSecret: "client battery",
		RefreshToken: "refresh battery", User: "u"}
	a.Proxy = "socks5://u:proxy-battery@proxy.example.com:1080"
	a.DKIM = &api.DKIM{Domain: "Example.com", Selector: "S1", PrivateKey: key}
	return a
}

func TestSecretsAreSealedInRedis(t *testing.T) {
	b := setup(t, nil)
	a := account("a")
	a.SMTP.Auth.Pass, a.SMTP.Auth.AccessToken = "correct horse battery", "ya29.access-token"
	b.create(t, a)
	other := secretive(t, "b")
	b.create(t, other)
	for _, id := range []string{"a", "b"} {
		if _, err := b.Update(t.Context(), id, api.AccountPatch{Name: new("findable name")}); err != nil {
			t.Fatal(err)
		}
		b.Outcome(t.Context(), id, errors.New("refused"))
		b.Outcome(t.Context(), id, refused())
	}
	if !testredis.Holds(t, b.db, "findable name") {
		t.Fatal("the search finds nothing at all")
	}
	_, key, _ := strings.Cut(other.DKIM.PrivateKey, "\n")
	key, _, _ = strings.Cut(key, "\n")
	secrets := []string{"correct horse battery", "battery", "ya29.access-token", key}
	for _, secret := range secrets {
		if testredis.Holds(t, b.db, secret) ||
			testredis.Holds(t, b.db, base64.StdEncoding.EncodeToString([]byte(secret))) {
			t.Errorf("%q is in Redis", secret)
		}
	}
	s := b.resolve(t, "b")
	if r := s.Relays[0]; r.OAuth.RefreshToken != "refresh battery" || r.OAuth.ClientSecret != "client battery" ||
		r.SMTP.Proxy != other.Proxy {
		t.Error("a secret was lost on the way")
	}
	if *s.DKIM != (api.DKIM{Domain: "example.com", Selector: "s1", PrivateKey: other.DKIM.PrivateKey}) {
		t.Error("the DKIM key was lost on the way, or is not in normal form")
	}
	page, err := b.List(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is shown: %s", secret, text)
		}
	}
	if n := strings.Count(string(text), records.Mask); n != 6 {
		t.Errorf("%d masks, want 6: %s", n, text)
	}
}

// TestMaskedSecretsStayWhereTheyGo: the rules are the same as for relays. This test checks that an account
// knows where each secret goes.
func TestMaskedSecretsStayWhereTheyGo(t *testing.T) {
	b := setup(t, nil)
	b.create(t, secretive(t, "a"))
	shown := b.show(t, "a").Account
	tests := []struct {
		name  string
		patch api.AccountPatch
		want  []string
	}{
		{"all as shown", api.AccountPatch{SMTP: new(shown.SMTP), OAuth2: new(shown.OAuth2), Proxy: &shown.Proxy,
			DKIM: new(shown.DKIM)}, nil},
		{"another selector", api.AccountPatch{
			DKIM: new(&api.DKIM{Domain: "example.com", Selector: "s2", PrivateKey: records.Mask})}, nil},
		{"another relay", api.AccountPatch{SMTP: new(&api.SMTPServer{Host: "evil.example.net", Port: 25})},
			[]string{"oauth2.clientSecret", "oauth2.refreshToken"}},
		{"another proxy", api.AccountPatch{Proxy: new("socks5://u:******@evil.example.net")},
			[]string{"oauth2.clientSecret", "oauth2.refreshToken", "proxy"}},
		{"no proxy any more", api.AccountPatch{Proxy: new("")},
			[]string{"oauth2.clientSecret", "oauth2.refreshToken"}},
	}
	for _, tt := range tests {
		_, err := b.Update(t.Context(), "a", tt.patch)
		if tt.want == nil {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, testkit.WrongFields(t, err)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if s := b.resolve(t, "a"); s.Relays[0].OAuth.RefreshToken != "refresh battery" || s.DKIM.Selector != "s2" {
		t.Errorf("after all: %v", s)
	}
}

func TestReseal(t *testing.T) {
	b := setup(t, configuredAccount())
	b.create(t, account("a"))
	b.create(t, secretive(t, "b"))
	open := account("open")
	open.SMTP.Auth = nil
	b.create(t, open)
	b.Outcome(t.Context(), "a", nil)
	url, updated := b.url, b.show(t, "a").Updated
	during := processWith(t, url, testkit.Ring(t, "new", "secret"), configuredAccount())
	if n, err := during.Reseal(t.Context()); n != 2 || err != nil {
		t.Errorf("%d, %v, want the two that have secrets", n, err)
	}
	if n, err := during.Reseal(t.Context()); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	after := process(t, url, "new", nil)
	if s := after.resolve(t, "a"); s.Relays[0].SMTP.Password != "correct horse" {
		t.Error("the password was lost")
	}
	if s := after.resolve(t, "b"); s.Relays[0].OAuth.RefreshToken != "refresh battery" ||
		s.DKIM.PrivateKey == "" {
		t.Error("a secret was lost")
	}
	if info := after.show(t, "a"); info.State != "connected" || !info.Updated.Equal(updated) {
		t.Errorf("sealing anew passes for an edit: %+v", info)
	}
	broken := processWith(t, url, testkit.Ring(t, "last", "wrong"), nil)
	if n, err := broken.Reseal(t.Context()); n != 0 || err == nil ||
		!strings.Contains(err.Error(), "account:a") || !strings.Contains(err.Error(), "account:b") {
		t.Errorf("under unknown secrets: %d, %v", n, err)
	}
}

func TestChangedInstanceSecretBreaksOnlyWhatNeedsIt(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("a"))
	later := process(t, b.url, "another secret", nil)
	if _, err := later.Resolve(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("resolve: %v", err)
	}
	if info, err := later.Get(t.Context(), "a"); err != nil || info.SMTP.Auth.Pass != records.Mask {
		t.Errorf("get: %+v, %v", info, err)
	}
	if _, err := later.Update(t.Context(), "a", api.AccountPatch{SMTP: new(account("a").SMTP)}); err != nil {
		t.Errorf("entering the password again: %v", err)
	}
	if s, err := later.Resolve(t.Context(), "a"); err != nil || s.Relays[0].SMTP.Password != "correct horse" {
		t.Errorf("resolve: %v, %v", s, err)
	}
}
