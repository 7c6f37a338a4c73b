package gateways

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// bundle is a Store on a Redis of its own, with a clock that the test moves.
type bundle struct {
	*Store
	db    *redisdb.DB
	clock *testkit.Clock
	url   string
}

func setup(t *testing.T) bundle {
	t.Helper()
	t.Parallel()
	return process(t, testredis.URL(t), testkit.Ring(t, "secret"))
}

// process is one more process on the same Redis.
func process(t *testing.T, url string, ring *seal.Ring) bundle {
	t.Helper()
	db := testredis.Connect(t, redisdb.Options{URL: url})
	c := testkit.NewClock()
	r, err := New(db, ring, Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return bundle{Store: r, db: db, clock: c, url: url}
}

func gateway(id string) api.Gateway {
	return api.Gateway{Gateway: id, Name: "A gateway", Host: "smtp.example.com", Port: 587, User: "u",
		Pass: "correct horse"}
}

// oauthGateway is one that has every other secret.
func oauthGateway(id string) api.Gateway {
	return api.Gateway{
		Gateway: id, Host: "smtp.example.com", Port: 587,
		Proxy: "socks5://p:proxy%20battery@proxy.example.com:1080",
		OAuth2: &api.OAuth2{
			TokenURL: "https://login.example.com/token", ClientID: "client", ClientSecret: "client battery",
			RefreshToken: "refresh battery", User: "u",
		},
	}
}

func (b bundle) create(t *testing.T, g api.Gateway) api.GatewayCreated {
	t.Helper()
	created, err := b.Create(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func (b bundle) get(t *testing.T, id string) api.GatewayInfo {
	t.Helper()
	info, err := b.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func (b bundle) resolve(t *testing.T, id string) Relay {
	t.Helper()
	r, err := b.Resolve(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// masked is a gateway as answers show it.
func masked(g api.Gateway) api.Gateway {
	for _, s := range gatewaySecrets(&g) {
		if s.Get() != "" {
			s.Set(records.Mask)
		}
	}
	return g
}

func second[T any](_ T, err error) error { return err }

func TestAnswersAsTheOriginal(t *testing.T) {
	b := setup(t)
	text, err := os.ReadFile("testdata/gateway-create.json")
	if err != nil {
		t.Fatal(err)
	}
	var create struct {
		Request  struct{ Body api.Gateway }
		Response struct{ Body api.GatewayCreated }
	}
	if err := json.Unmarshal(text, &create); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(create.Response.Body, b.create(t, create.Request.Body)); diff != "" {
		t.Error(diff)
	}
	if again := b.create(t, create.Request.Body); again.State != "existing" {
		t.Errorf("%+v", again)
	}
	want := api.GatewayInfo{Gateway: create.Request.Body, State: "unset", Created: testkit.ClockStart,
		Updated: testkit.ClockStart}
	want.Pass = records.Mask
	if diff := cmp.Diff(want, b.get(t, "gw1")); diff != "" {
		t.Error(diff)
	}
}

func TestUpdateChangesWhatThePatchHas(t *testing.T) {
	tests := []struct {
		name  string
		patch api.GatewayPatch
		want  func(g *api.Gateway)
	}{
		{"nothing", api.GatewayPatch{}, func(*api.Gateway) {}},
		{"the name", api.GatewayPatch{Name: new("New")}, func(g *api.Gateway) { g.Name = "New" }},
		{"port and TLS, with the password", api.GatewayPatch{Port: new(465), Secure: new(true),
			TLS: new(&api.SMTPTLS{MinVersion: "TLSv1.3"}), Pass: new("battery")}, func(g *api.Gateway) {
			g.Port, g.Secure, g.TLS, g.Pass = 465, true, &api.SMTPTLS{MinVersion: "TLSv1.3"}, "battery"
		}},
		{"the password, masked", api.GatewayPatch{Pass: new(records.Mask)}, func(*api.Gateway) {}},
		{"the password", api.GatewayPatch{Pass: new("battery")}, func(g *api.Gateway) { g.Pass = "battery" }},
		{"no login", api.GatewayPatch{User: new(""), Pass: new("")}, func(g *api.Gateway) {
			g.User, g.Pass = "",
				""
		}},
		{"another host, with the password", api.GatewayPatch{Host: new("other.example.com"), Pass: new("battery")},
			func(g *api.Gateway) {
				g.Host, g.Pass = "other.example.com", "battery"
			}},
		{"OAuth instead", api.GatewayPatch{
			OAuth2: new(&api.OAuth2{Provider: "gmail", ClientID: "c", RefreshToken: "r", User: "u"})}, func(
			g *api.Gateway) {
			g.User, g.Pass, g.OAuth2 = "", "", &api.OAuth2{Provider: "gmail", ClientID: "c", RefreshToken: "r",
				User: "u"}
		}},
		{"the rest", api.GatewayPatch{
			Preset: new("generic"), Limits: new(&api.Limits{PerSecond: 5}), LocalAddress: new("192.0.2.1"),
			SMTPEhloName: new("me.example.com"),
		}, func(g *api.Gateway) {
			g.Preset, g.Limits, g.LocalAddress, g.SMTPEhloName = "generic", &api.Limits{
				PerSecond: 5}, "192.0.2.1", "me.example.com"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			b.create(t, gateway("g"))
			if got, err := b.Update(t.Context(), "g", tt.patch); err != nil || got.Gateway != "g" {
				t.Fatalf("%+v, %v", got, err)
			}
			want := gateway("g")
			tt.want(&want)
			if diff := cmp.Diff(masked(want), b.get(t, "g").Gateway); diff != "" {
				t.Error(diff)
			}
			route := ofGateway(want).Relay("gateway:g")
			route.Gateway, route.Rate = "g", Rate(ofGateway(want).Limits())
			if diff := cmp.Diff(route.SMTP, b.resolve(t, "g").SMTP); diff != "" {
				t.Error(diff)
			}
		})
	}
	b := process(t, testredis.URL(t), testkit.Ring(t, "secret"))
	b.create(t, oauthGateway("g"))
	if _, err := b.Update(t.Context(), "g", api.GatewayPatch{User: new("u"), Pass: new("p")}); err != nil ||
		b.get(t, "g").OAuth2 != nil {
		t.Errorf("a password instead of OAuth: %v", err)
	}
	full := gateway("full")
	full.TLS, full.Limits, full.Warmup = &api.SMTPTLS{MinVersion: "TLSv1.3"}, &api.Limits{
		PerDay: 9}, &api.Warmup{PerDay: 5}
	b.create(t, full)
	if _, err := b.Update(t.Context(), "full", api.GatewayPatch{
		TLS: new((*api.SMTPTLS)(nil)), Limits: new((*api.Limits)(nil)), Warmup: new((*api.Warmup)(nil)),
		OAuth2: new((*api.OAuth2)(nil)),
	}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(masked(gateway("full")), b.get(t, "full").Gateway); diff != "" {
		t.Errorf("fields taken away: %s", diff)
	}
	if _, err := b.Update(t.Context(), "nosuch", api.GatewayPatch{}); fault.CodeOf(err) != "GatewayNotFound" {
		t.Errorf("unknown: %v", err)
	}
	_, err := b.Update(t.Context(), "g", api.GatewayPatch{Port: new(70000), Host: new("a b"), Preset: new("x")})
	if diff := cmp.Diff([]string{"preset", "host", "port"}, testkit.WrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
}

func TestListPages(t *testing.T) {
	b := setup(t)
	if empty, err := b.List(t.Context(), 0, 0); err != nil || empty.Gateways == nil || empty.Total != 0 {
		t.Errorf("without gateways: %+v, %v", empty, err)
	}
	for _, id := range []string{"c", "a", "b"} {
		b.create(t, gateway(id))
	}
	var got []string
	for page := range 2 {
		p, err := b.List(t.Context(), page, 2)
		if err != nil || p.Total != 3 || p.Pages != 2 || p.Page != page {
			t.Errorf("%+v, %v", p, err)
		}
		for _, g := range p.Gateways {
			got = append(got, g.Gateway.Gateway+" "+g.Pass)
		}
	}
	if diff := cmp.Diff([]string{"a ******", "b ******", "c ******"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDelete(t *testing.T) {
	b := setup(t)
	b.create(t, gateway("g"))
	b.Outcome(t.Context(), "g", 1, nil)
	for name, err := range map[string]error{
		"delete what is its state": b.Delete(t.Context(), "g:state"),
		"get what is its state":    second(b.Get(t.Context(), "g:state")),
		"resolve its state":        second(b.Resolve(t.Context(), "g:state")),
	} {
		if fault.CodeOf(err) != "GatewayNotFound" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Delete(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	exists, err := b.Exists(t.Context(), "g")
	if exists || err != nil {
		t.Errorf("exists: %t, %v", exists, err)
	}
	b.Outcome(t.Context(), "g", 1, nil)
	for name, err := range map[string]error{
		"again": b.Delete(t.Context(), "g"), "get": second(b.Get(t.Context(), "g")),
		"resolve": second(b.Resolve(t.Context(), "g")),
	} {
		if !fault.Is(err, fault.NotFound) || fault.CodeOf(err) != "GatewayNotFound" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if keys := b.db.Client().Keys(t.Context(), "*:gateway:*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
}

func TestOtherProcessesSeeAChangeWithinASecond(t *testing.T) {
	b := setup(t)
	other := process(t, b.url, testkit.Ring(t, "secret"))
	if exists, err := other.Exists(t.Context(), "g"); exists || err != nil {
		t.Fatalf("%t, %v", exists, err)
	}
	b.create(t, gateway("g"))
	other.clock.Advance(time.Second)
	if exists, err := other.Exists(t.Context(), "g"); !exists || err != nil {
		t.Errorf("created: %t, %v", exists, err)
	}
	patch := api.GatewayPatch{Port: new(2525), Pass: new("battery")}
	if _, err := b.Update(t.Context(), "g", patch); err != nil {
		t.Fatal(err)
	}
	if here := b.resolve(t, "g").SMTP.Port; here != 2525 {
		t.Errorf("where it was changed: %d", here)
	}
	other.clock.Advance(time.Second)
	if there := other.resolve(t, "g").SMTP.Port; there != 2525 {
		t.Errorf("elsewhere: %d", there)
	}
	sent := testredis.CountCommands(other.db)
	for range 100 {
		other.resolve(t, "g")
	}
	if n := sent.Sent(); n != 0 {
		t.Errorf("%d commands for 100 messages within a second", n)
	}
}

// TestWhileRedisIsAway runs before the parallel tests: the client continues to dial for up to a second after
// it.
func TestWhileRedisIsAway(t *testing.T) {
	server := testredis.Server(t)
	b := process(t, server.URL(), testkit.Ring(t, "secret"))
	b.create(t, gateway("g"))
	b.resolve(t, "g")
	server.Kill()
	b.resolve(t, "g") // still remembered
	b.clock.Advance(time.Minute)
	b.Outcome(t.Context(), "g", 1, nil)
	for name, err := range map[string]error{
		"resolve": second(b.Resolve(t.Context(), "g")), "list": second(b.List(t.Context(), 0, 0)),
		"create": second(b.Create(t.Context(), gateway("h"))), "reseal": second(b.Reseal(t.Context())),
	} {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	server.Restart(t)
	b.resolve(t, "g")
	b.flush(t.Context())
	if got := b.get(t, "g").Deliveries; got != 1 {
		t.Errorf("%d deliveries, want the one from when Redis was away", got)
	}
}

func TestPresetsAreThoseOfTheContract(t *testing.T) {
	var names []string
	for name := range presets {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"generic", "gmail", "icloud", "mailgun", "office365", "postmark", "sendgrid", "ses"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}
