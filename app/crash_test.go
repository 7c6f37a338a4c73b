package app_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testproxy"
	"github.com/postroom/postroom/internal/testredis"
)

// TestKilledWorkerLosesNothing kills Postroom in the middle of a thousand messages, restarts it, and counts
// deliveries. Each message counts once towards the daily quota, and none stays counted as waiting.
func TestKilledWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	const messages = 1000
	redis, relay := testredis.Server(t), apptest.SlowRelay(t, 5*time.Millisecond)
	set := apptest.SettingsFor(t, redis.URL(), relay)
	set["quotas.perDay"], set["quotas.messages"] = strconv.Itoa(messages*2), strconv.Itoa(messages)
	first := apptest.Spawn(t, set)
	began := time.Now()
	accepted := submitAll(t, first.Client, messages)
	relay.Wait(messages / 10)
	first.Kill()
	before := relay.Count()

	second := apptest.Spawn(t, set)
	restarted := time.Now()
	apptest.Empty(t, second.Client)
	t.Logf("all delivered %s after the restart, %d of them before the kill",
		time.Since(restarted).Round(time.Millisecond), before)
	usage, err := api.GetUsage.Do(t.Context(), second.Client, "default")
	if err != nil || usage.Messages.Used != 0 || usage.Bytes.Used != 0 || usage.PerDay.Used > messages ||
		time.Now().UTC().Day() == began.UTC().Day() && usage.PerDay.Used != messages {
		t.Errorf("usage after all: %+v, %v", usage, err)
	}
	take(t, relay, apptest.Connect(t, redis.URL())).check(t, accepted)
}

// TestStoppedWorkerCutsNothing stops Postroom with SIGTERM under load. What is in flight finishes, and
// nothing is sent twice.
func TestStoppedWorkerCutsNothing(t *testing.T) {
	t.Parallel()
	const messages = 400
	redis, relay := testredis.Server(t), apptest.SlowRelay(t, 20*time.Millisecond)
	set := apptest.SettingsFor(t, redis.URL(), relay)
	first := apptest.Spawn(t, set)
	accepted := submitAll(t, first.Client, messages)
	relay.Wait(messages / 10)
	first.Stop(t)

	second := apptest.Spawn(t, set)
	apptest.Empty(t, second.Client)
	got := take(t, relay, apptest.Connect(t, redis.URL()))
	got.check(t, accepted)
	for to, n := range got.copies {
		if n > 1 || got.doubted[to] {
			t.Errorf("%s: delivered %d times, in doubt %t: a stop must leave no doubt", to, n, got.doubted[to])
		}
	}
}

// TestRedisAwayForAWhile disconnects Redis while mail is submitted and delivered.
func TestRedisAwayForAWhile(t *testing.T) {
	t.Parallel()
	redis, relay := testredis.Server(t), apptest.SlowRelay(t, 5*time.Millisecond)
	plug := testproxy.New(t, "unix", redis.Socket())
	p := apptest.Spawn(t, apptest.SettingsFor(t, "redis://"+plug.Addr(), relay))
	accepted := submitAll(t, p.Client, 200)
	plug.Down()
	away := time.Now()
	refused := 0
	for time.Since(away) < 5*time.Second {
		to := fmt.Sprintf("away%d@example.net", refused)
		_, err := api.Submit.Do(t.Context(), p.Client, api.SubmitRequest{To: api.Addresses{{Address: to}},
			Text: "x"})
		if err == nil {
			accepted = append(accepted, to)
			continue
		}
		wantUnavailable(t, err)
		refused++
	}
	plug.Up()
	if refused == 0 {
		t.Error("no submit was refused while Redis was away")
	}
	apptest.Eventually(t, "submits are taken again", func() bool {
		_, err := api.Submit.Do(t.Context(), p.Client, api.SubmitRequest{
			To: api.Addresses{{Address: "back@example.net"}}, Text: "x"})
		return err == nil
	})
	apptest.Empty(t, p.Client)
	take(t, relay, apptest.Connect(t, redis.URL())).check(t, accepted)
}

func wantUnavailable(t *testing.T, err error) {
	t.Helper()
	failure, ok := errors.AsType[*api.Failure](err)
	if !ok || failure.Problem.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("submit while Redis is away: %v, want 503", err)
	}
}

// submitAll submits messages from several clients at once and returns the recipients of the accepted ones.
func submitAll(t *testing.T, client *api.Client, n int) []string {
	t.Helper()
	var mu sync.Mutex
	var accepted []string
	var wg sync.WaitGroup
	for worker := range 10 {
		wg.Go(func() {
			for i := worker; i < n; i += 10 {
				to := fmt.Sprintf("ann%d@example.net", i)
				if err := insist(t, client, to); err != nil {
					t.Errorf("submit %d: %v", i, err)
					return
				}
				mu.Lock()
				accepted = append(accepted, to)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return accepted
}

// insist submits a message until it is accepted, as clients do after a 503. An idempotency key makes the
// attempts one message. On a busy host Redis may once take too long to answer.
func insist(t *testing.T, client *api.Client, to string) error {
	t.Helper()
	req := api.SubmitRequest{To: api.Addresses{{Address: to}}, Subject: "Hello", Text: "Hello",
		IdempotencyKey: to}
	for late := time.Now().Add(apptest.Patience); ; {
		_, err := api.Submit.Do(t.Context(), client, req)
		failure, ok := errors.AsType[*api.Failure](err)
		if !ok || failure.Problem.StatusCode != http.StatusServiceUnavailable || time.Now().After(late) {
			return err
		}
	}
}
