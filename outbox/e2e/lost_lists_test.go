package e2e_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestLostListsOfEveryQueueAreFilledAgain: Redis loses the lists of all queues while mail of both lanes, due
// and delayed, webhooks and the search index wait in them. Everything happens without a restart, each message
// leaves once, and the log says how many tasks were put back. docs/architecture.md promises it.
func TestLostListsOfEveryQueueAreFilledAgain(t *testing.T) {
	t.Parallel()
	t.Run("single server", func(t *testing.T) {
		t.Parallel()
		loseLists(t, testredis.Server(t).URL(), 1)
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		loseLists(t, testredis.Cluster(t, testredis.Topology{}).URL(), 6)
	})
}

func loseLists(t *testing.T, url string, partitions int) {
	relay := testsmtp.Start(t, testsmtp.Options{})
	var failing atomic.Bool
	failing.Store(true)
	hooks := apptest.Receive(t)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failing.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		hooks.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(door.Close)
	log := &apptest.Log{}
	a := apptest.RunLogging(t, map[string]string{"redis.url": url, "redis.partitions": fmt.Sprint(partitions),
		"smtp": relay.URL(), "from": "shop@example.com", "webhooks.allowPrivate": "true"},
		slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), nil)))
	client := api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: door.URL}); err != nil {
		t.Fatal(err)
	}
	l := &lostLists{client: client, redis: apptest.Connect(t, url).Client(), ids: map[string]bool{}}
	apptest.Finds(t, client, "", 0) // from now on the index reads each event within a second
	l.submit(t, "now@example.net", api.Transactional, time.Time{})
	l.submit(t, "dot-451-1@example.net", api.Transactional, time.Time{})
	relay.Wait(1)
	l.waits(t, "notify", "retry")
	l.pause(t, true)
	soon := time.Now().Add(5 * time.Second)
	for n := range 2 * partitions {
		l.submit(t, fmt.Sprintf("one%d@example.net", n), api.Transactional, time.Time{})
		l.submit(t, fmt.Sprintf("bulk%d@example.net", n), api.Bulk, time.Time{})
		l.submit(t, fmt.Sprintf("later%d@example.net", n), api.Transactional, soon)
	}
	for _, queue := range []string{"submit", "bulk", "documents"} {
		l.waits(t, queue, "pending")
	}
	l.waits(t, "submit", "scheduled")
	l.waits(t, "submit", "retry", "scheduled")
	for _, key := range l.keys(t, "pending", "scheduled", "retry", "active", "lease") {
		if err := l.redis.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	failing.Store(false)
	l.pause(t, false)
	to := func() (all []string) {
		for _, m := range relay.Messages() {
			all = append(all, m.To...)
		}
		return all
	}
	apptest.Eventually(t, "all messages leave", func() bool { return len(to()) >= len(l.to) })
	apptest.Eventually(t, "all events are delivered", func() bool {
		return hooks.About(event.MessageSent, l.ids) == len(l.ids)
	})
	apptest.Finds(t, client, "status:sent", len(l.ids))
	if put := regexp.MustCompile(`msg="queues repaired" returned=[1-9]`); !put.MatchString(log.String()) {
		t.Error("the log doesn't say how many tasks were put back")
	}
	got, want := slices.Sorted(slices.Values(to())), slices.Sorted(slices.Values(l.to))
	if !slices.Equal(got, want) {
		t.Errorf("mail left to %s, want %s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// lostLists is a Postroom whose queues lose their lists.
type lostLists struct {
	client *api.Client
	redis  redis.UniversalClient
	ids    map[string]bool // ids of the submitted messages
	to     []string        // their recipients
}

func (l *lostLists) submit(t *testing.T, to string, lane api.Lane, at time.Time) {
	t.Helper()
	req := api.SubmitRequest{To: api.Addresses{{Address: to}}, Text: "x", Lane: lane}
	if !at.IsZero() {
		req.SendAt = &at
	}
	answer, err := api.Submit.Do(t.Context(), l.client, req)
	if err != nil {
		t.Fatal(err)
	}
	l.ids[answer.QueueID], l.to = true, append(l.to, to)
}

// pause pauses all queues, or resumes them.
func (l *lostLists) pause(t *testing.T, yes bool) {
	t.Helper()
	for _, queue := range []string{"submit", "bulk", "notify", "documents"} {
		if _, err := api.PutQueue.Do(t.Context(), l.client, api.QueuePatch{Paused: &yes}, queue); err != nil {
			t.Fatal(err)
		}
	}
}

// waits waits until a task waits in one of some lists of a queue.
func (l *lostLists) waits(t *testing.T, queue string, lists ...string) {
	t.Helper()
	apptest.Eventually(t, fmt.Sprintf("something waits in %s of %s", lists, queue), func() bool {
		return slices.ContainsFunc(l.keys(t, lists...), func(key string) bool {
			return strings.HasPrefix(key, "asynq:{"+queue)
		})
	})
}

// keys returns the lists of all queues that are there.
func (l *lostLists) keys(t *testing.T, lists ...string) (keys []string) {
	t.Helper()
	queues, err := l.redis.SMembers(t.Context(), "asynq:queues").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range queues {
		for _, list := range lists {
			key := "asynq:{" + queue + "}:" + list
			if n, err := l.redis.Exists(t.Context(), key).Result(); err != nil {
				t.Fatal(err)
			} else if n > 0 {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
