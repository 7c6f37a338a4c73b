package accounts

import (
	"testing"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestOtherProcessesSeeAChangeWithinASecond(t *testing.T) {
	b := setup(t, configuredAccount())
	other := process(t, b.url, "secret", configuredAccount())
	resolve := func(p bundle, id string) string {
		t.Helper()
		s, err := p.Resolve(t.Context(), id)
		if err != nil {
			return string(fault.KindOf(err))
		}
		return s.Name
	}
	b.create(t, account("a"))
	if got := resolve(other, "a"); got != "Sender One" {
		t.Fatalf("created: %s", got)
	}
	if _, err := b.Update(t.Context(), "a", api.AccountPatch{Name: new("Renamed")}); err != nil {
		t.Fatal(err)
	}
	if got := resolve(b, "a"); got != "Renamed" {
		t.Errorf("where it was changed: %s", got)
	}
	other.clock.Advance(time.Second)
	if got := resolve(other, "a"); got != "Renamed" {
		t.Errorf("elsewhere: %s", got)
	}
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	other.clock.Advance(time.Second)
	if got := resolve(other, "a"); got != string(fault.NotFound) {
		t.Errorf("deleted: %s", got)
	}
	if got := resolve(other, ""); got != "Configured" {
		t.Errorf("configured: %s", got)
	}
	b.create(t, account(DefaultID))
	other.clock.Advance(time.Second)
	if got := resolve(other, ""); got != "Sender One" {
		t.Errorf("overridden: %s", got)
	}
}

func TestResolveCostsNoRoundTrip(t *testing.T) {
	b := setup(t, configuredAccount())
	b.create(t, account("a"))
	use := func() {
		t.Helper()
		for _, id := range []string{"", DefaultID, "a"} {
			s, err := b.Resolve(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			b.Outcome(t.Context(), s.ID, nil)
		}
	}
	use()
	sent := testredis.CountCommands(b.db)
	for range 100 {
		use()
	}
	if n := sent.Sent(); n != 0 {
		t.Errorf("%d commands for 300 messages within a second", n)
	}
	b.clock.Advance(time.Second)
	use()
	if n := sent.Sent(); n != 1 {
		t.Errorf("%d commands to look for changes, want 1", n)
	}
}

func TestResolveWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := process(t, server.URL(), "secret", configuredAccount())
	if _, err := b.Resolve(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if _, err := b.Resolve(t.Context(), ""); err != nil {
		t.Errorf("within a second: %v", err)
	}
	b.clock.Advance(time.Minute)
	if _, err := b.Resolve(t.Context(), ""); !fault.Is(err, fault.Unavailable) {
		t.Errorf("after a minute: %v", err)
	}
	if _, err := b.Create(t.Context(), account("a")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("create: %v", err)
	}
	server.Restart(t)
	if _, err := b.Resolve(t.Context(), ""); err != nil {
		t.Errorf("after Redis is back: %v", err)
	}
}

func BenchmarkResolve(b *testing.B) {
	db := testredis.New(b)
	ring := testkit.Ring(b, "secret")
	gateways, err := gateways.New(db, ring, gateways.Options{})
	if err != nil {
		b.Fatal(err)
	}
	a, err := New(db, ring, gateways, Options{Default: configuredAccount()})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := a.Resolve(b.Context(), ""); err != nil {
				b.Error(err)
			}
		}
	})
}
