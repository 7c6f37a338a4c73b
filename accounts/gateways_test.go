package accounts

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func countCommands(b bundle, do func()) int64 {
	sent := testredis.CountCommands(b.db)
	do()
	return sent.Sent()
}

// gateway stores a gateway.
func (b bundle) gateway(t *testing.T, g api.Gateway) {
	t.Helper()
	if g.Host == "" {
		g.Host, g.Port = g.Gateway+".example.net", 587
	}
	if _, err := b.relays.Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
}

// throughGateways returns an account without its own relay.
func throughGateways(id string, gateways ...string) api.Account {
	a := account(id)
	a.SMTP = nil
	for _, g := range gateways {
		a.Gateways = append(a.Gateways, api.Route{Gateway: g})
	}
	return a
}

// hosts lists where a sender's mail goes, in order.
func hosts(s Sender) []string {
	var all []string
	for _, r := range s.Relays {
		all = append(all, r.Gateway+" "+r.SMTP.Host)
	}
	return all
}

func TestRoutesAreTheOwnRelayThenTheGateways(t *testing.T) {
	b := setup(t, nil)
	b.gateway(t, api.Gateway{Gateway: "g1", User: "u", Pass: "p", Limits: &api.Limits{
		PerSecond: 7, Connections: 2}})
	b.gateway(t, api.Gateway{Gateway: "g2"})
	a := throughGateways("a", "g1", "g2")
	a.SMTP, a.Limits = account("a").SMTP, &api.Limits{PerMinute: 30, Connections: 4}
	b.create(t, a)
	s := b.resolve(t, "a")
	if err := s.Ready(api.Transactional); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{" smtp.example.com", "g1 g1.example.net", "g2 g2.example.net"},
		hosts(s)); diff != "" {
		t.Fatal(diff)
	}
	own, first := s.Relays[0], s.Relays[1]
	if s.Rate != (limits.Rate{PerMinute: 30}) || own.Rate != (limits.Rate{}) || own.Connections != 4 ||
		own.SMTP.Shared != "account:a" {
		t.Errorf("own relay: rate %v %v, connections %d of %q", s.Rate, own.Rate, own.Connections, own.SMTP.Shared)
	}
	if first.Rate != (limits.Rate{PerSecond: 7}) || first.Connections != 2 ||
		first.SMTP.Shared != "gateway:g1" || first.SMTP.Password != "p" {
		t.Errorf("gateway: rate %v, connections %d of %q", first.Rate, first.Connections, first.SMTP.Shared)
	}
	if n := countCommands(b, func() {
		for range 100 {
			b.resolve(t, "a")
		}
	}); n != 0 {
		t.Errorf("%d commands for 100 messages", n)
	}
	if _, err := b.relays.Update(t.Context(), "g1", api.GatewayPatch{Host: new("moved.example.net"),
		Pass: new("p")}); err != nil {
		t.Fatal(err)
	}
	if got := b.resolve(t, "a").Relays[1].SMTP.Host; got != "moved.example.net" {
		t.Errorf("a changed gateway is not seen: %s", got)
	}
}

func TestWeightsGoWithTheGateways(t *testing.T) {
	b := setup(t, nil)
	b.gateway(t, api.Gateway{Gateway: "g1"})
	b.gateway(t, api.Gateway{Gateway: "g2"})
	a := throughGateways("a", "g1", "g2")
	a.Gateways[0].Weight = 3
	b.create(t, a)
	if s := b.resolve(t, "a"); s.Relays[0].Weight != 3 || s.Relays[1].Weight != 0 {
		t.Errorf("%d, %d", s.Relays[0].Weight, s.Relays[1].Weight)
	}
}

func TestUnknownGatewaysAreRefused(t *testing.T) {
	b := setup(t, nil)
	b.gateway(t, api.Gateway{Gateway: "g1"})
	a := throughGateways("a", "g1", "nosuch", "g1", "x:state")
	a.Email, a.Gateways[1].Weight = "", 2000
	want := []string{"email", "gateways[1].weight", "gateways[2].gateway", "gateways[3].gateway",
		"gateways[1].gateway"}
	_, err := b.Create(t.Context(), a)
	if diff := cmp.Diff(want, testkit.WrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
	b.create(t, throughGateways("a", "g1"))
	_, err = b.Update(t.Context(), "a", api.AccountPatch{
		Gateways: &[]api.Route{{Gateway: "g1"}, {Gateway: "nosuch"}}})
	if diff := cmp.Diff([]string{"gateways[1].gateway"}, testkit.WrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
}

func TestDeletedGatewayIsLeftOut(t *testing.T) {
	b := setup(t, nil)
	var log bytes.Buffer
	b.log = slog.New(slog.NewTextHandler(&log, nil))
	b.gateway(t, api.Gateway{Gateway: "g1"})
	b.gateway(t, api.Gateway{Gateway: "g2"})
	b.create(t, throughGateways("a", "g1", "g2"))
	if err := b.relays.Delete(t.Context(), "g1"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if diff := cmp.Diff([]string{"g2 g2.example.net"}, hosts(b.resolve(t, "a"))); diff != "" {
			t.Error(diff)
		}
	}
	if n := strings.Count(log.String(), "gateway=g1"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
	if n := countCommands(b, func() { b.resolve(t, "a") }); n != 0 {
		t.Errorf("a gateway that is gone costs %d commands for each message", n)
	}
	if _, err := b.Update(t.Context(), "a", api.AccountPatch{Name: new("N")}); err != nil {
		t.Errorf("the deleted gateway stands in the way: %v", err)
	}
	if err := b.relays.Delete(t.Context(), "g2"); err != nil {
		t.Fatal(err)
	}
	if err := b.resolve(t, "a").Ready(api.Transactional); !fault.Is(err, fault.Conflict) ||
		fault.CodeOf(err) != "AccountWithoutRelay" || !strings.Contains(err.Error(), "PUT /v1/account/a") {
		t.Errorf("without any route: %v", err)
	}
	if _, err := b.Webhooks(t.Context(), "a"); err != nil {
		t.Errorf("webhooks: %v", err)
	}
}

func TestOneBrokenGatewayDoesNotStopTheOthers(t *testing.T) {
	b := setup(t, nil)
	b.gateway(t, api.Gateway{Gateway: "g1", User: "u", Pass: "p"})
	b.gateway(t, api.Gateway{Gateway: "g2"})
	b.create(t, throughGateways("a", "g1", "g2"))
	b.create(t, throughGateways("b", "g1"))
	later := process(t, b.url, "another secret", nil)
	if diff := cmp.Diff([]string{"g2 g2.example.net"}, hosts(later.resolve(t, "a"))); diff != "" {
		t.Error(diff)
	}
	if err := later.resolve(t, "b").Ready(api.Transactional); fault.CodeOf(err) != "AccountWithoutRelay" {
		t.Errorf("with nothing but the broken one: %v", err)
	}
}

func TestUsingGatewayNamesAccounts(t *testing.T) {
	configured := throughGateways("", "g1")
	b := setup(t, &configured)
	b.gateway(t, api.Gateway{Gateway: "g1"})
	b.gateway(t, api.Gateway{Gateway: "g2"})
	b.create(t, throughGateways("z", "g2", "g1"))
	b.create(t, throughGateways("a", "g1"))
	b.create(t, account("none"))
	for gateway, want := range map[string][]string{"g1": {"a", DefaultID, "z"}, "g2": {"z"}, "nosuch": {}} {
		got, err := b.UsingGateway(t.Context(), gateway)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", gateway, diff)
		}
	}
	b.create(t, account(DefaultID))
	if got, err := b.UsingGateway(t.Context(), "g1"); err != nil || len(got) != 2 {
		t.Errorf("with the configured account replaced: %v, %v", got, err)
	}
}

func TestOAuthIsOfTheOwnRelay(t *testing.T) {
	b := setup(t, nil)
	a := account("a")
	a.SMTP = &api.SMTPServer{Preset: "gmail"}
	a.OAuth2 = &api.OAuth2{ClientID: "id", ClientSecret: "cs", RefreshToken: "rt", User: "me@example.com"}
	b.create(t, a)
	r := b.resolve(t, "a").Relays[0]
	if r.OAuth == nil || r.OAuth.Provider != "gmail" || r.OAuth.RefreshToken != "rt" ||
		r.OAuthUser != "me@example.com" {
		t.Errorf("%v of %s", r.OAuth, r.OAuthUser)
	}
	if rate := b.resolve(t, "a").Rate; rate.PerDay != 2000 {
		t.Errorf("the preset's limit is not the account's: %+v", rate)
	}
	info, err := b.Update(t.Context(), "a", api.AccountPatch{
		SMTP: new(&api.SMTPServer{Preset: "gmail", Auth: &api.SMTPAuth{User: "me", Pass: "app password"}})})
	if err != nil || info.OAuth2 != nil {
		t.Errorf("a password in place of OAuth: %+v, %v", info.OAuth2, err)
	}
	info, err = b.Update(t.Context(), "a", api.AccountPatch{OAuth2: new(a.OAuth2)})
	if err != nil || info.SMTP.Auth != nil || info.OAuth2.RefreshToken != "******" {
		t.Errorf("OAuth in place of a password: %+v, %v", info.SMTP, err)
	}
	b.clock.Advance(time.Second)
	if r := b.resolve(t, "a").Relays[0]; r.SMTP.Password != "" || r.OAuth == nil {
		t.Error("the old login is still there")
	}
}
