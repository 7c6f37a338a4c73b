package webhooks

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
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
