package accounts

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/relays"
)

func TestUpdateChangesWhatThePatchHas(t *testing.T) {
	tests := []struct {
		name  string
		patch api.AccountPatch
		want  func(a *api.Account)
	}{
		{"nothing", api.AccountPatch{}, func(*api.Account) {}},
		{"the name", api.AccountPatch{Name: ptr("New")}, func(a *api.Account) { a.Name = "New" }},
		{"the name, away", api.AccountPatch{Name: ptr("")}, func(a *api.Account) { a.Name = "" }},
		{"the address", api.AccountPatch{Email: ptr("b@example.com")}, func(a *api.Account) { a.Email = "b@example.com" }},
		{"all but the relay", api.AccountPatch{
			Webhooks: ptr("https://example.com/h"), LocalAddress: ptr("192.0.2.1"), SMTPEhloName: ptr("mx.example.com"),
			Retry: &[]string{"1m", "5m"}, Limits: &api.Limits{Connections: 3},
		}, func(a *api.Account) {
			a.Webhooks, a.LocalAddress, a.SMTPEhloName = "https://example.com/h", "192.0.2.1", "mx.example.com"
			a.Retry, a.Limits = []string{"1m", "5m"}, &api.Limits{Connections: 3}
		}},
		{"the relay", api.AccountPatch{SMTP: &api.SMTPServer{Host: "other.example.com", Port: 25}}, func(a *api.Account) {
			a.SMTP = &api.SMTPServer{Host: "other.example.com", Port: 25}
		}},
		{"the port, keeping the password", api.AccountPatch{SMTP: &api.SMTPServer{Host: "smtp.example.com", Port: 465, Secure: true,
			Auth: &api.SMTPAuth{User: "u", Pass: relays.Mask}}}, func(a *api.Account) { a.SMTP.Port, a.SMTP.Secure = 465, true }},
		{"the password", api.AccountPatch{SMTP: &api.SMTPServer{Host: "smtp.example.com", Port: 587,
			Auth: &api.SMTPAuth{User: "u", Pass: "battery staple"}}}, func(a *api.Account) { a.SMTP.Auth.Pass = "battery staple" }},
		{"password to token", api.AccountPatch{SMTP: &api.SMTPServer{Host: "smtp.example.com", Port: 587,
			Auth: &api.SMTPAuth{User: "u", AccessToken: "ya29"}}}, func(a *api.Account) { a.SMTP.Auth = &api.SMTPAuth{User: "u", AccessToken: "ya29"} }},
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
		return api.AccountPatch{SMTP: &api.SMTPServer{Host: host, Port: 25, Auth: &auth}}
	}
	tests := []struct {
		name, id string
		patch    api.AccountPatch
		want     []string
	}{
		{"wrong values, all of them", "a", api.AccountPatch{Email: ptr("x"), Webhooks: ptr("ftp://x")}, []string{"email", "webhooks"}},
		{"the stored password for another host", "a", relay("evil.example.net", api.SMTPAuth{User: "u", Pass: relays.Mask}), []string{"smtp.auth.pass"}},
		{"a relays.Mask where nothing is stored", "open", relay("smtp.example.com", api.SMTPAuth{User: "u", Pass: relays.Mask}), []string{"smtp.auth.pass"}},
		{"a relays.Mask for the token that isn't stored", "a", relay("smtp.example.com", api.SMTPAuth{User: "u", AccessToken: relays.Mask}), []string{"smtp.auth.accessToken"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.Update(t.Context(), tt.id, tt.patch)
			if diff := cmp.Diff(tt.want, wrongFields(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := b.Update(t.Context(), "nosuch", api.AccountPatch{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown account: %v", err)
	}
	if s, err := b.Resolve(t.Context(), "a"); err != nil || s.Routes[0].Relay.Password != "correct horse" || s.Routes[0].Relay.Host != "smtp.example.com" {
		t.Errorf("after the refusals: %v, %v", s, err)
	}
}

func TestChangesAtTheSameTimeDoNotMix(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("a"))
	other := process(t, b.url, "secret", nil)
	patches := []api.AccountPatch{{Name: ptr("N")}, {Webhooks: ptr("https://example.com/")}, {Retry: &[]string{"7m"}}, {LocalAddress: ptr("192.0.2.1")}}
	var wg sync.WaitGroup
	for i, p := range patches {
		wg.Go(func() {
			for {
				_, err := []bundle{b, other}[i%2].Update(t.Context(), "a", p)
				if err == nil {
					return
				}
				if !fault.Is(err, fault.Conflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	want := account("a")
	want.Name, want.Webhooks, want.Retry, want.LocalAddress = "N", "https://example.com/", []string{"7m"}, "192.0.2.1"
	info, err := b.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(masked(want), info.Account); diff != "" {
		t.Error(diff)
	}
}

func TestWriteWhoseAnswerWasLostMayRunAgain(t *testing.T) {
	b := setup(t, nil)
	s, err := b.sealed(account("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if done, err := b.store.put(t.Context(), s, nil); err != nil || !done {
			t.Errorf("%v, %v", done, err)
		}
	}
	later, err := b.sealed(account("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := b.store.put(t.Context(), later, nil); err != nil || done {
		t.Errorf("a write that read nothing replaced one: %v, %v", done, err)
	}
}
