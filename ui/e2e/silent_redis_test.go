package e2e_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testproxy"
	"github.com/postroom/postroom/internal/testredis"
)

// TestEveryAnswerComesInTimeWhileRedisIsSilent makes the requests of server/examples/requests.json, and makes
// each again while Redis says nothing, several times at once. Every operation answers, and nobody waits for
// another request. docs/api.md promises it.
func TestEveryAnswerComesInTimeWhileRedisIsSilent(t *testing.T) {
	t.Parallel()
	const atOnce = 30 // operations that are asked within the second for which a token is known
	proxy := testproxy.New(t, "unix", testredis.Server(t).Socket())
	s := newStory(t, "redis://"+proxy.Addr(), nil)
	var made []step
	for _, step := range s.steps(t) {
		if step.Login != "" {
			s.login(t, step)
			continue
		}
		s.play(t, step)
		if made = append(made, step); len(made) == atOnce {
			s.silent(t, proxy, made)
			made = nil
		}
	}
	s.silent(t, proxy, made)
}

// silent makes requests while Redis is silent. What they tell Redis never reaches it.
func (s *story) silent(t *testing.T, proxy *testproxy.Proxy, steps []step) {
	t.Helper()
	const times = 6 // one behind the other, they would take 12 seconds
	var requests sync.WaitGroup
	proxy.Hang()
	for _, step := range steps {
		for range times {
			requests.Go(func() {
				begin := time.Now()
				got, _ := s.ask(t, step)
				if took := time.Since(begin); took > 11*time.Second { // it takes two
					t.Errorf("%s answered %d after %v: %s", step.Operation, got.Status, took, got.Answer)
				}
				missing := strings.Contains(string(got.Answer), "Redis is unavailable")
				if got.Status >= http.StatusInternalServerError && (got.Status != http.StatusServiceUnavailable ||
					!missing) {
					t.Errorf("%s answered %d: %s", step.Operation, got.Status, got.Answer)
				}
			})
		}
	}
	requests.Wait()
	proxy.Cut()
	proxy.Up()
	apptest.Eventually(t, "Redis is used again", func() bool {
		got, _ := s.ask(t, step{Operation: "getSettings"})
		return got.Status == http.StatusOK
	})
}
