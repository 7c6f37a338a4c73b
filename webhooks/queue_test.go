package webhooks

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// running is a Webhooks as it runs in a process: fan-out, real queue, workers.
func running(t *testing.T, workers int, change ...func(*Options)) (b *bundle, stop func()) {
	t.Helper()
	b = build(t, testredis.New(t), nil, change...)
	client := b.db.Client()
	b.enqueue, b.states = queue.NewClient(client, queue.Options{}).Enqueue, queue.NewControl(client).States
	server, err := queue.NewServer(client, map[string]queue.Handler{TaskType: b.Deliver}, queue.ServerOptions{
		Pools: []queue.Pool{{Name: "notify", Queues: map[string]int{queue.Notify: 1}, Workers: workers}},
		Grace: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	for _, run := range []func(context.Context) error{b.Run, server.Run} {
		parts.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); parts.Wait() })
	t.Cleanup(stop)
	return b, stop
}

func TestFromStreamToEndpoint(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b, stop := running(t, 10)
	ep := b.endpoint(rc.URL)
	const events = 300
	for i := range events {
		b.emit("E"+strconv.Itoa(i), event.MessageSent, "snd")
	}
	eventually(t, "all events arrive", func() bool { return len(rc.got()) >= events })
	stop()
	seen := map[string]int{}
	for _, r := range rc.got() {
		seen[r.header.Get("X-EE-Wh-Event-Id")]++
	}
	if len(seen) != events || len(rc.got()) != events {
		t.Errorf("%d requests for %d of %d events", len(rc.got()), len(seen), events)
	}
	if page, err := b.Deliveries(t.Context(), ep.ID, 0, 1000); err != nil || page.Total != events ||
		page.Deliveries[0].Status != "delivered" {
		t.Errorf("log of %d, %v", page.Total, err)
	}
}

func TestFailedAttemptComesBack(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(503)
		}
	})
	b, _ := running(t, 2, func(o *Options) { o.Backoff = queue.Backoff{Base: 100 * time.Millisecond} })
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	eventually(t, "a second attempt", func() bool { return len(rc.got()) == 2 })
	eventually(t, "it is delivered", func() bool { return b.delivery(ep.ID, "E1").Status == "delivered" })
}

// With more tasks for a hanging endpoint than there are workers, another endpoint is served as if nothing
// were.
func TestHangingEndpointDelaysNoOther(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var inside, most atomic.Int64
	hanging := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		n := inside.Add(1)
		defer inside.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-release
	})
	prompt := answering(t, 200)
	b, _ := running(t, 6, func(o *Options) { o.PerEndpoint = 3; o.Timeout = time.Minute })
	t.Cleanup(sync.OnceFunc(func() { close(release) })) // before the workers are waited for
	b.endpoint(hanging.URL, func(r *api.EndpointRequest) { r.Accounts = []string{"slow"} })
	b.endpoint(prompt.URL, func(r *api.EndpointRequest) { r.Accounts = []string{"quick"} })
	for i := range 40 {
		b.emit("S"+strconv.Itoa(i), event.MessageSent, "slow")
	}
	eventually(t, "the hanging endpoint has its workers", func() bool { return inside.Load() == 3 })
	for i := range 40 {
		b.emit("Q"+strconv.Itoa(i), event.MessageSent, "quick")
	}
	eventually(t, "the prompt endpoint gets everything", func() bool { return len(prompt.got()) == 40 })
	if n := most.Load(); n != 3 {
		t.Errorf("%d requests at once to one endpoint, 3 are allowed", n)
	}
}

// With no Redis anywhere Postroom keeps everything in this process: another interpreter of Lua runs the
// scripts.
func TestInMemoryStore(t *testing.T) {
	t.Setenv("PATH", "") // no redis-server to be found
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if db.Mode() != redisdb.Memory {
		t.Fatalf("mode %s", db.Mode())
	}
	rc := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 2 {
			w.WriteHeader(410)
		}
	})
	b := build(t, db, nil, func(o *Options) { o.LogSize = 1 })
	ep := b.endpoint(rc.URL, func(r *api.EndpointRequest) { r.RateLimit = 1 })
	start := b.clock().Truncate(time.Second)
	b.now = func() time.Time { return start }
	for _, id := range []string{"E1", "E2", "E3", "E4"} {
		b.emit(id, event.MessageSent, "snd")
	}
	b.fanOutAll()
	var verdicts []string
	for _, id := range []string{"E1", "E2"} {
		verdicts = append(verdicts, b.run(ep.ID, id))
	}
	b.now = func() time.Time { return start.Add(time.Second) }
	for _, id := range []string{"E2", "E3"} {
		verdicts = append(verdicts, b.run(ep.ID, id))
	}
	if want := []string{"done", "not_now", "bury", "drop"}; !slices.Equal(verdicts, want) {
		t.Errorf("verdicts %v, want %v", verdicts, want)
	}
	disabledEvents(t, b, ep.ID, 1)
	if ids, total := logIDs(t, b, ep.ID, 0, 10); total != 2 {
		t.Errorf("log %v of %d: one is pending, one is kept", ids, total)
	}
	b.now = func() time.Time { return start.Add(time.Hour) }
	if err := (sweeper{b.Webhooks}).sweepOnce(t.Context()); err != nil {
		t.Errorf("sweep: %v", err)
	}
	if deleted, err := b.Delete(t.Context(), ep.ID); !deleted || err != nil {
		t.Errorf("delete: %v, %v", deleted, err)
	}
}
