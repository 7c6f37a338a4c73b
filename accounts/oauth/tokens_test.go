package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func TestTokenIsUsedUntilAMinuteBeforeItEnds(t *testing.T) {
	p, s := setup(t)
	c := s.client()
	c.Scope = "mail"
	p.access(t, c, "", "access-token-1")
	sent := testredis.CountCommands(p.db)
	p.Advance(57 * time.Minute)
	p.access(t, c, "", "access-token-1")
	if n := sent.Sent(); n != 0 {
		t.Errorf("a token in hand costs %d Redis commands", n)
	}
	p.Advance(2 * time.Minute)
	p.access(t, c, "", "access-token-2")
	want := url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {firstRefresh}, "client_id": {"client-id"},
		"client_secret": {clientSecret}, "scope": {"mail"},
	}
	if diff := cmp.Diff([]url.Values{want, want}, s.requests()); diff != "" {
		t.Error(diff)
	}
}

func TestFreshFor(t *testing.T) {
	for _, tc := range []struct {
		name   string
		life   time.Duration
		jitter float64
		want   time.Duration
	}{
		{"an hour", time.Hour, 0, 59 * time.Minute},
		{"an hour, spread", time.Hour, 0.5, 58*time.Minute + 30*time.Second},
		{"short: for half of it", 150 * time.Second, 0.9, 75 * time.Second},
		{"shorter: a minute is kept", 100 * time.Second, 0.9, 40 * time.Second},
		{"too short for a minute", time.Minute, 0.5, 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := freshFor(tc.life, tc.jitter); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestProcessesAskOnce(t *testing.T) {
	t.Parallel()
	s, u := newTokenServer(t), testredis.URL(t)
	two := []*process{start(t, u, Options{}), start(t, u, Options{})}
	s.set(func() { s.rotate = true })
	for round := 1; round <= 2; round++ {
		var all sync.WaitGroup
		for _, p := range two {
			for range 20 {
				all.Go(func() {
					if _, err := p.Access(t.Context(), shop, s.client(), ""); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if n := len(s.requests()); n != round {
			t.Fatalf("%d requests in %d rounds", n, round)
		}
		for _, p := range two {
			p.Advance(time.Hour)
		}
	}
}

func TestRefusedTokenIsReplacedOnce(t *testing.T) {
	t.Parallel()
	s, u := newTokenServer(t), testredis.URL(t)
	one, two := start(t, u, Options{}), start(t, u, Options{})
	one.access(t, s.client(), "", "access-token-1")
	two.access(t, s.client(), "", "access-token-1")
	one.access(t, s.client(), "access-token-1", "access-token-2")
	two.access(t, s.client(), "access-token-1", "access-token-2")
	one.access(t, s.client(), "access-token-1", "access-token-2")
	if n := len(s.requests()); n != 2 {
		t.Errorf("%d requests", n)
	}

	// A relay that refuses the new one as well would refuse the next.
	if e := two.fails(t, s.client(), "access-token-2"); !e.Permanent || e.Code != CodeRefused {
		t.Errorf("refused again: %v", e)
	}
	two.access(t, s.client(), "", "access-token-2")
	two.Advance(2 * time.Minute)
	two.access(t, s.client(), "access-token-2", "access-token-3")
}

func TestConfigurationChanges(t *testing.T) {
	p, s := setup(t)
	s.set(func() { s.rotate = true })
	c := s.client()
	p.access(t, c, "", "access-token-1")
	used := func() string { all := s.requests(); return all[len(all)-1].Get("refresh_token") }

	p.Advance(time.Hour)
	p.access(t, c, "", "access-token-2")
	if used() != "refresh-token-1" {
		t.Errorf("the rotated token was not used but %s", used())
	}
	c.ClientSecret = "another-secret" // the consent is still the same
	p.access(t, c, "", "access-token-2")
	p.Advance(time.Hour)
	p.access(t, c, "", "access-token-3")
	if used() != "refresh-token-2" {
		t.Errorf("after a new client secret %s was used", used())
	}
	c.Scope = "other"
	p.access(t, c, "", "access-token-4")
	if used() != "refresh-token-3" {
		t.Errorf("for another scope %s was used", used())
	}
	c.RefreshToken = "refresh-token-new"
	s.set(func() { s.current = "refresh-token-new" })
	p.access(t, c, "", "access-token-5")
	if used() != "refresh-token-new" {
		t.Errorf("after a new consent %s was used", used())
	}
}

func TestRotatedTokenSurvivesARestart(t *testing.T) {
	t.Parallel()
	s, u := newTokenServer(t), testredis.URL(t)
	s.set(func() { s.rotate = true })
	start(t, u, Options{}).access(t, s.client(), "", "access-token-1")
	next := start(t, u, Options{})
	next.access(t, s.client(), "", "access-token-1")
	next.Advance(24 * time.Hour)
	next.access(t, s.client(), "", "access-token-2")
}

// TestOldRefreshTokenMayStillBeGood: a Redis restored from a backup has a rotated token that is used up,
// while the configured one is good.
func TestOldRefreshTokenMayStillBeGood(t *testing.T) {
	p, s := setup(t)
	s.set(func() { s.rotate = true })
	p.access(t, s.client(), "", "access-token-1")
	s.set(func() { s.current = firstRefresh })
	p.Advance(time.Hour)
	p.access(t, s.client(), "", "access-token-3")
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	server, s := testredis.Server(t), newTokenServer(t)
	p := start(t, server.URL(), Options{})
	p.access(t, s.client(), "", "access-token-1")
	server.Kill()
	p.access(t, s.client(), "", "access-token-1")
	p.Advance(59 * time.Minute) // to be replaced, but alive
	p.access(t, s.client(), "", "access-token-1")
	p.Advance(time.Minute)
	if e := p.fails(t, s.client(), ""); e.Permanent || !redisdb.Unavailable(e) {
		t.Errorf("without a good token: %v", e)
	}
	server.Restart(t)
	p.access(t, s.client(), "", "access-token-2")
}

func TestTokenServerAway(t *testing.T) {
	t.Parallel()
	s, u := newTokenServer(t), testredis.URL(t)
	start(t, u, Options{}).access(t, s.client(), "", "access-token-1")
	p := start(t, u, Options{})
	s.answering(http.StatusServiceUnavailable, "")
	p.Advance(59 * time.Minute)
	p.access(t, s.client(), "", "access-token-1") // better than none
	p.access(t, s.client(), "", "access-token-1")
	if n := len(s.requests()); n != 2 {
		t.Errorf("%d requests, though the server is to be left alone", n)
	}
	p.fails(t, s.client(), "access-token-1")
	p.Advance(time.Minute)
	if e := p.fails(t, s.client(), ""); e.Permanent || e.Status != http.StatusServiceUnavailable {
		t.Error(e)
	}
}

func TestRefusalIsRememberedForAWhile(t *testing.T) {
	p, s := setup(t)
	s.answering(http.StatusBadRequest, `{"error":"invalid_grant"}`)
	for range 3 {
		p.fails(t, s.client(), "")
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	c := s.client()
	c.ClientSecret = "corrected"
	p.fails(t, c, "")
	p.Advance(time.Minute)
	p.fails(t, c, "")
	if n := len(s.requests()); n != 3 {
		t.Errorf("%d requests after a change and a minute", n)
	}
}

// TestCallerLeaves: a token that no one waits for any more is stored anyway, since its refresh token may be
// rotated. A process that stops waits for that.
func TestCallerLeaves(t *testing.T) {
	p, s := setup(t)
	ctx, leave := context.WithCancel(t.Context())
	goOn := make(chan struct{})
	s.set(func() { s.rotate, s.meddle = true, func() { leave(); <-goOn } })
	if _, err := p.Access(ctx, shop, s.client(), ""); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	stopped := make(chan error)
	go func() { stopped <- p.Run(ctx) }()
	close(goOn)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.meddle = nil })
	p.access(t, s.client(), "", "access-token-1")
}

func TestRunDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Tokens{log: newDiscard(), owners: map[string]*owner{
			shop: {flight: &flight{done: make(chan struct{})}}}}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		if err := p.Run(ctx); err != nil || time.Since(began) != settle {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestForget(t *testing.T) {
	p, s := setup(t)
	s.set(func() { s.rotate = true })
	p.access(t, s.client(), "", "access-token-1")
	if err := p.Forget(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	keys, err := p.db.Client().Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 0 {
		t.Errorf("left: %v, %v", keys, err)
	}
	s.set(func() { s.current = firstRefresh })
	p.access(t, s.client(), "", "access-token-2")
}

func TestMemoryIsBounded(t *testing.T) {
	p, s := setup(t)
	p.access(t, s.client(), "", "access-token-1")
	p.mu.Lock()
	for i := range maxOwners {
		p.owner(strings.Repeat("x", i%7) + time.Duration(i).String())
	}
	n := len(p.owners)
	p.mu.Unlock()
	if n > maxOwners {
		t.Errorf("%d owners in memory", n)
	}
	p.access(t, s.client(), "", "access-token-1") // from Redis
}

func TestSettingsThatCannotWork(t *testing.T) {
	p, s := setup(t)
	for _, tc := range []struct {
		name   string
		change func(*Client)
	}{
		{"no refresh token", func(c *Client) { c.RefreshToken = "" }},
		{"no client", func(c *Client) { c.ClientID = "" }},
		{"an unknown provider", func(c *Client) { c.Provider = "hotmail" }},
		{"no address", func(c *Client) { c.TokenURL = "" }},
		{"no TLS", func(c *Client) { c.TokenURL = "http://login.example.com/token" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := s.client()
			tc.change(&c)
			if e := p.fails(t, c, ""); !e.Permanent || e.Code != CodeSettings {
				t.Error(e)
			}
		})
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
