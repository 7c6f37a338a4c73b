package limits

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom/internal/testredis"
)

// TestConnect counts the connections of two processes together.
func TestConnect(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	a, b := on(t, db), on(t, db)
	var releases []func()
	connect := func(p *bench, scope string, want bool) {
		t.Helper()
		release, err := p.Connect(t.Context(), scope, 3)
		var full *Full
		switch {
		case want && err != nil:
			t.Fatal(err)
		case !want && !errors.As(err, &full):
			t.Fatalf("a connection too many: %v", err)
		case !want && (full.RetryAfter() < time.Second || full.RetryAfter() > 2*time.Second):
			t.Errorf("told to come back after %v", full.RetryAfter())
		case want:
			releases = append(releases, release)
		}
	}
	connect(a, "account:x", true)
	connect(b, "account:x", true)
	connect(b, "account:x", true)
	connect(a, "account:x", false)
	connect(a, "account:y", true)
	if n := b.state(t, "account:x").Connections; n != 3 {
		t.Errorf("%d connections are shown, want 3", n)
	}
	releases[1]()
	releases[1]() // the second time gives nothing back
	connect(a, "account:x", true)
	connect(b, "account:x", false)
	for range 100 {
		if _, err := a.Connect(t.Context(), "account:x", 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeases: a dead process' connections are free again after 30 s, a live one's are not.
func TestLeases(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	dead, alive := on(t, db), on(t, db)
	for _, p := range []*bench{dead, alive} {
		if _, err := p.Connect(t.Context(), "account:x", 2); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		alive.Advance(length / 3)
		alive.held.Renew(t.Context())
	}
	if n := alive.state(t, "account:x").Connections; n != 1 {
		t.Errorf("%d connections count after 40 s, want 1", n)
	}
	if _, err := alive.Connect(t.Context(), "account:x", 2); err != nil {
		t.Errorf("the place of the dead is not free: %v", err)
	}
	if _, err := alive.Connect(t.Context(), "account:x", 2); err == nil {
		t.Error("a third connection of two")
	}
	alive.Advance(length + time.Second) // it could not renew for so long: Redis was away
	alive.held.Renew(t.Context())
	if n := alive.state(t, "account:x").Connections; n != 2 {
		t.Errorf("%d connections count again, want 2", n)
	}
}

// TestReleaseOutlivesItsContext: a connection is closed long after the message is gone that it was opened
// for.
func TestReleaseOutlivesItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	release, err := b.Connect(ctx, "account:x", 1)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	release()
	b.held.Renew(t.Context())
	if n := b.state(t, "account:x").Connections; n != 0 {
		t.Errorf("%d connections count after the release", n)
	}
}

// TestConnectTwiceByName: a command is repeated when its answer was lost, and must not take a second place or
// be refused its own.
func TestConnectTwiceByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 2 {
		if ok, err := b.store.connect(t.Context(), connection{"account:x", "name"}, 1); !ok || err != nil {
			t.Errorf("%t, %v", ok, err)
		}
	}
}

// TestConnectionReleasedDuringARenewal: it is not counted again by the renewal that it was released during.
func TestConnectionReleasedDuringARenewal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.renew(t.Context(), []connection{{"account:x", "released"}}); err != nil {
		t.Fatal(err)
	}
	if n := b.db.Client().ZCard(t.Context(), connectionsKey("account:x")).Val(); n != 0 {
		t.Errorf("%d connections count", n)
	}
}

// TestRun ends with its context, and does not touch Redis while there is nothing to renew.
func TestRun(t *testing.T) {
	db := testredis.New(t)
	sent := testredis.CountCommands(db)
	synctest.Test(t, func(t *testing.T) {
		l, err := New(db, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	if n := sent.Sent(); n != 0 {
		t.Errorf("%d commands for nothing", n)
	}
}
