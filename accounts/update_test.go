package accounts

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/testkit"
)

func TestUpdateChangesWhatThePatchHas(t *testing.T) {
	tests := []struct {
		name  string
		patch api.AccountPatch
		want  func(a *api.Account)
	}{
		{"nothing", api.AccountPatch{}, func(*api.Account) {}},
		{"the name", api.AccountPatch{Name: new("New")}, func(a *api.Account) { a.Name = "New" }},
		{"the name, away", api.AccountPatch{Name: new("")}, func(a *api.Account) { a.Name = "" }},
		{"the address", api.AccountPatch{Email: new("b@example.com")}, func(a *api.Account) {
			a.Email = "b@example.com"
		}},
		{"all but the relay", api.AccountPatch{
			Webhooks: new("https://example.com/h"), LocalAddress: new("192.0.2.1"),
			SMTPEhloName: new("mx.example.com"),
			Retry:        &[]string{"1m", "5m"}, Limits: new(&api.Limits{Connections: 3}),
		}, func(a *api.Account) {
			a.Webhooks, a.LocalAddress, a.SMTPEhloName = "https://example.com/h", "192.0.2.1", "mx.example.com"
			a.Retry, a.Limits = []string{"1m", "5m"}, &api.Limits{Connections: 3}
		}},
		{"tracking", api.AccountPatch{TrackOpens: new(new(true)), TrackClicks: new(new(false))},
			func(a *api.Account) {
				a.TrackOpens, a.TrackClicks = new(true), new(false)
			}},
		{"tracking, away", api.AccountPatch{TrackOpens: new((*bool)(nil))}, func(*api.Account) {}},
		{"the relay", api.AccountPatch{SMTP: new(&api.SMTPServer{Host: "other.example.com", Port: 25})},
			func(a *api.Account) {
				a.SMTP = &api.SMTPServer{Host: "other.example.com", Port: 25}
			}},
		{"the user, keeping the password", api.AccountPatch{
			SMTP: new(&api.SMTPServer{Host: "smtp.example.com", Port: 587,
				Auth: &api.SMTPAuth{User: "v", Pass: records.Mask}})}, func(a *api.Account) {
			a.SMTP.Auth.User = "v"
		}},
		{"the password", api.AccountPatch{SMTP: new(&api.SMTPServer{Host: "smtp.example.com", Port: 587,
			Auth: &api.SMTPAuth{User: "u", Pass: "battery staple"}})}, func(a *api.Account) {
			a.SMTP.Auth.Pass = "battery staple"
		}},
		{"password to token", api.AccountPatch{SMTP: new(&api.SMTPServer{Host: "smtp.example.com", Port: 587,
			Auth: &api.SMTPAuth{User: "u", AccessToken: "ya29"}})}, func(a *api.Account) {
			a.SMTP.Auth = &api.SMTPAuth{User: "u", AccessToken: "ya29"}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, nil)
			b.create(t, account("a"))
			want := account("a")
			tt.want(&want)
			info, err := b.Update(t.Context(), "a", tt.patch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(masked(want), info.Account); diff != "" {
				t.Error(diff)
			}
			sender, err := b.Resolve(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			expect, err := newEntry(want, false)
			if err != nil {
				t.Fatal(err)
			}
			expect.sender.permit(want, false)
			if diff := cmp.Diff(expect.sender, sender); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUpdateRefuses(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("a"))
	open := account("open")
	open.SMTP.Auth = nil
	b.create(t, open)
	relay := func(host string, auth api.SMTPAuth) api.AccountPatch {
		return api.AccountPatch{SMTP: new(&api.SMTPServer{Host: host, Port: 25, Auth: &auth})}
	}
	tests := []struct {
		name, id string
		patch    api.AccountPatch
		want     []string
	}{
		{"wrong values, all of them", "a", api.AccountPatch{Email: new("x"), Webhooks: new("ftp://x")},
			[]string{"email", "webhooks"}},
		{"the stored password for another host", "a",
			relay("evil.example.net", api.SMTPAuth{User: "u", Pass: records.Mask}), []string{"smtp.auth.pass"}},
		{"a records.Mask where nothing is stored", "open",
			relay("smtp.example.com", api.SMTPAuth{User: "u", Pass: records.Mask}), []string{"smtp.auth.pass"}},
		{"a records.Mask for the token that isn't stored", "a",
			relay("smtp.example.com", api.SMTPAuth{User: "u", AccessToken: records.Mask}),
			[]string{"smtp.auth.accessToken"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.Update(t.Context(), tt.id, tt.patch)
			if diff := cmp.Diff(tt.want, testkit.WrongFields(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := b.Update(t.Context(), "nosuch", api.AccountPatch{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown account: %v", err)
	}
	if s, err := b.Resolve(t.Context(), "a"); err != nil || s.Relays[0].SMTP.Password != "correct horse" ||
		s.Relays[0].SMTP.Host != "smtp.example.com" {
		t.Errorf("after the refusals: %v, %v", s, err)
	}
}

func TestUpdateTakesFieldsAway(t *testing.T) {
	noSMTP, noOAuth, noDKIM, noLimits := new((*api.SMTPServer)(nil)), new((*api.OAuth2)(nil)), new(
		(*api.DKIM)(nil)), new((*api.Limits)(nil))
	tests := []struct {
		name  string
		alone bool // the account has no gateway
		patch api.AccountPatch
		want  func(a *api.Account)
		wrong []string
	}{
		{name: "the key", patch: api.AccountPatch{DKIM: noDKIM}, want: func(a *api.Account) { a.DKIM = nil }},
		{name: "the limits", patch: api.AccountPatch{Limits: noLimits}, want: func(a *api.Account) {
			a.Limits = nil
		}},
		{name: "the login", patch: api.AccountPatch{OAuth2: noOAuth}, want: func(a *api.Account) {
			a.OAuth2 = nil
		}},
		{name: "the login, for a password", patch: api.AccountPatch{OAuth2: noOAuth, SMTP: new(account("a").SMTP)},
			want: func(a *api.Account) {
				a.OAuth2, a.SMTP = nil, account("a").SMTP
			}},
		{name: "the relay with what belongs to it", patch: api.AccountPatch{SMTP: noSMTP, OAuth2: noOAuth,
			Proxy: new("")}, want: func(a *api.Account) {
			a.SMTP, a.OAuth2, a.Proxy = nil, nil, ""
		}},
		{name: "the relay alone", patch: api.AccountPatch{SMTP: noSMTP}, wrong: []string{"oauth2", "proxy"}},
		{name: "the only relay", alone: true, patch: api.AccountPatch{SMTP: noSMTP, OAuth2: noOAuth,
			Proxy: new("")}, wrong: []string{"smtp"}},
		{name: "the gateways, too", patch: api.AccountPatch{SMTP: noSMTP, Gateways: &[]api.Route{}},
			wrong: []string{"smtp"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, nil)
			b.gateway(t, api.Gateway{Gateway: "g"})
			want := secretive(t, "a")
			want.Limits = &api.Limits{PerMinute: 5}
			if !tt.alone {
				want.Gateways = []api.Route{{Gateway: "g"}}
			}
			b.create(t, want)
			info, err := b.Update(t.Context(), "a", tt.patch)
			if tt.wrong != nil {
				if diff := cmp.Diff(tt.wrong, testkit.WrongFields(t, err)); diff != "" {
					t.Error(diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want(&want)
			want = masked(want)
			if want.DKIM != nil {
				want.DKIM.Domain, want.DKIM.Selector = "example.com", "s1"
			}
			if diff := cmp.Diff(want, info.Account); diff != "" {
				t.Error(diff)
			}
			if s := b.resolve(t, "a"); (s.DKIM != nil) != (want.DKIM != nil) || len(s.Relays) == 0 ||
				(s.Relays[0].Gateway == "") != (want.SMTP != nil) {
				t.Errorf("%v: %v", s, s.Relays)
			}
		})
	}
}
