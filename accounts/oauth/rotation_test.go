package oauth

import (
	"bytes"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func newDiscard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestRotatedTokenIsNotUsedBeforeItIsStored: Redis dies while the token server answers. The refresh token
// that came with the answer is the only good one now.
func TestRotatedTokenIsNotUsedBeforeItIsStored(t *testing.T) {
	t.Parallel()
	server, s := testredis.Server(t), newTokenServer(t)
	p := start(t, server.URL(), Options{})
	s.set(func() { s.rotate, s.meddle = true, server.Kill })
	if e := p.fails(t, s.client(), ""); e.Permanent || !redisdb.Unavailable(e) {
		t.Fatalf("while Redis is away: %v", e)
	}
	s.set(func() { s.meddle = nil })
	server.Restart(t)
	p.access(t, s.client(), "", "access-token-1")
	start(t, server.URL(), Options{}).access(t, s.client(), "", "access-token-1")
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestUnrotatedTokenIsUsedWithoutRedis: nothing is lost with it.
func TestUnrotatedTokenIsUsedWithoutRedis(t *testing.T) {
	t.Parallel()
	server, s := testredis.Server(t), newTokenServer(t)
	p := start(t, server.URL(), Options{})
	s.set(func() { s.meddle = server.Kill })
	p.access(t, s.client(), "", "access-token-1")
}

// TestUnstoredTokenGivesWay: by the time Redis is back, another process has a newer token.
func TestUnstoredTokenGivesWay(t *testing.T) {
	p, s := setup(t)
	s.set(func() { s.rotate = true })
	p.access(t, s.client(), "", "access-token-1")
	p.setUnstored(shop, &rotation{before: record{Access: "older"},
		after: record{Access: "lost", Refresh: "lost"}})
	p.Advance(time.Hour)
	p.access(t, s.client(), "", "access-token-2")
	if p.owners[shop].unstored != nil {
		t.Error("it is still kept")
	}
}

// TestUnstoredTokenGoesOn: what could not be stored is also too old by now; its refresh token is the one to
// ask with.
func TestUnstoredTokenGoesOn(t *testing.T) {
	p, s := setup(t)
	c := s.client()
	s.set(func() { s.rotate, s.current = true, "refresh-token-kept" })
	p.setUnstored(shop, &rotation{after: record{Access: "old", Refresh: "refresh-token-kept", Grant: c.grant()}})
	p.access(t, c, "", "access-token-1")
	if used := s.requests()[0].Get("refresh_token"); used != "refresh-token-kept" {
		t.Errorf("asked with %s", used)
	}
}

// TestProcessDiesWhileItAsks: its lock holds the others up until it runs out. If the server had rotated, the
// refresh token is lost, and that is said.
func TestProcessDiesWhileItAsks(t *testing.T) {
	p, s := setup(t)
	s.set(func() { s.rotate, s.current = true, "known-to-the-dead-only" })
	began := time.Now()
	lock := p.store.lock(shop, "of the dead")
	lock.Length = 300 * time.Millisecond
	if ours, err := lock.Claim(t.Context()); err != nil || !ours {
		t.Fatal(ours, err)
	}
	if e := p.fails(t, s.client(), ""); !e.Permanent || e.Code != "invalid_grant" ||
		e.Description != "used already" {
		t.Error(e)
	}
	if waited := time.Since(began); waited < 200*time.Millisecond {
		t.Errorf("waited %s for the lock", waited)
	}
}

// TestLockLostAndNobodyElse: a failover of Redis loses the lock, and nothing else.
func TestLockLostAndNobodyElse(t *testing.T) {
	p, s := setup(t)
	s.set(func() {
		s.rotate = true
		s.meddle = func() { p.db.Client().Del(t.Context(), lockKey(shop)) }
	})
	p.access(t, s.client(), "", "access-token-1")
	p.Advance(time.Hour)
	p.access(t, s.client(), "", "access-token-2")
}

// TestOvertaken: the answer comes so late that another process has its turn meanwhile, and its token is the
// one in force.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	s, u := newTokenServer(t), testredis.URL(t)
	slow, quick := start(t, u, Options{}), start(t, u, Options{})
	var once atomic.Bool
	s.set(func() {
		s.meddle = func() {
			if once.Swap(true) {
				return
			}
			slow.db.Client().Del(t.Context(), lockKey(shop))
			quick.access(t, s.client(), "", "access-token-2")
		}
	})
	slow.access(t, s.client(), "", "access-token-2")
}

// TestForgottenMeanwhile: the owner is deleted while its token is asked for; nothing of it comes back.
func TestForgottenMeanwhile(t *testing.T) {
	p, s := setup(t)
	p.access(t, s.client(), "", "access-token-1")
	p.Advance(time.Hour)
	s.set(func() {
		s.meddle = func() {
			if err := p.Forget(t.Context(), shop); err != nil {
				t.Error(err)
			}
		}
	})
	if e := p.fails(t, s.client(), ""); e.Permanent {
		t.Error(e)
	}
	if keys := p.db.Client().Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}

func TestReseal(t *testing.T) {
	t.Parallel()
	s, u := newTokenServer(t), testredis.URL(t)
	s.set(func() { s.rotate = true })
	old := start(t, u, Options{}, "o")
	old.access(t, s.client(), "", "access-token-1")
	if _, err := old.Access(t.Context(), "gateway:gone", s.client(), ""); err == nil {
		t.Fatal("the used refresh token was taken")
	}
	// its record has run out
	if err := old.db.Client().SAdd(t.Context(), ownersKey(), "gateway:gone").Err(); err != nil {
		t.Fatal(err)
	}

	during := start(t, u, Options{}, "n", "o")
	during.access(t, s.client(), "", "access-token-1")
	left := during.db.Client().PTTL(t.Context(), recordKey(shop)).Val()
	for _, want := range []int{1, 0} {
		if n, err := during.Reseal(t.Context()); n != want || err != nil {
			t.Errorf("resealed %d, %v; want %d", n, err, want)
		}
	}
	if now := during.db.Client().PTTL(t.Context(), recordKey(shop)).Val(); now <= 0 || now > left {
		t.Errorf("kept for %s, before for %s", now, left)
	}
	owners, err := during.store.client.SMembers(t.Context(), ownersKey()).Result()
	if err != nil || len(owners) != 1 {
		t.Errorf("owners %v, %v", owners, err)
	}
	after := start(t, u, Options{}, "n")
	after.access(t, s.client(), "", "access-token-1")
	after.Advance(time.Hour)
	after.access(t, s.client(), "", "access-token-3")
	if n, err := old.Reseal(t.Context()); n != 0 || err == nil {
		t.Errorf("with the old secret alone: resealed %d, %v", n, err)
	}
}

// TestResealWhileTokensChange loses no token, whoever comes first.
func TestResealWhileTokensChange(t *testing.T) {
	t.Parallel()
	s, u := newTokenServer(t), testredis.URL(t)
	start(t, u, Options{}, "o").access(t, s.client(), "", "access-token-1")
	p := start(t, u, Options{}, "n", "o")
	p.Advance(time.Hour)
	s.set(func() {
		s.rotate = true
		s.meddle = func() {
			if n, err := p.Reseal(t.Context()); n != 1 || err != nil {
				t.Errorf("resealed %d, %v", n, err)
			}
		}
	})
	p.access(t, s.client(), "", "access-token-2")
	start(t, u, Options{}, "n").access(t, s.client(), "", "access-token-2")
}

// TestRecordUnderALostSecret: the configured refresh token is asked with, and the log says why.
func TestRecordUnderALostSecret(t *testing.T) {
	t.Parallel()
	s, u := newTokenServer(t), testredis.URL(t)
	start(t, u, Options{}, "o").access(t, s.client(), "", "access-token-1")
	p := start(t, u, Options{}, "n")
	p.access(t, s.client(), "", "access-token-2")
	if !bytes.Contains([]byte(p.log.String()), []byte("can't be opened")) {
		t.Errorf("log: %s", p.log)
	}
}

// TestNothingReadable looks for secrets in Redis and in the log.
func TestNothingReadable(t *testing.T) {
	p, s := setup(t)
	s.set(func() { s.rotate = true })
	p.access(t, s.client(), "", "access-token-1")
	p.access(t, s.client(), "access-token-1", "access-token-2")
	s.set(func() { s.current = "none" })
	p.Advance(time.Hour)
	p.fails(t, s.client(), "")
	if !testredis.Holds(t, p.db, shop) {
		t.Error("the search finds nothing at all")
	}
	for _, secret := range secretsOf(clientSecret, firstRefresh, "access-token-", "refresh-token-", "url-key") {
		if testredis.Holds(t, p.db, secret) {
			t.Errorf("Redis holds %s", secret)
		}
		if bytes.Contains([]byte(p.log.String()), []byte(secret)) {
			t.Errorf("the log holds %s:\n%s", secret, p.log)
		}
	}
	if !bytes.Contains([]byte(p.log.String()), []byte("invalid_grant")) {
		t.Errorf("the log does not tell of the refusal:\n%s", p.log)
	}
}
