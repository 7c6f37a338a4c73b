package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// bundle is a Webhooks on a Redis of its own, with a clock that the test moves, a queue that only remembers,
// and all that was logged.
type bundle struct {
	*Webhooks
	t     *testing.T
	spool *spool
	log   *safeBuffer

	mu   sync.Mutex
	skew time.Duration
}

const serviceSecret = "the service secret of this instance"

func setup(t *testing.T, change ...func(*Options)) *bundle {
	return setupWith(t, nil, change...)
}

func setupWith(t *testing.T, src *sources, change ...func(*Options)) *bundle {
	t.Helper()
	return build(t, testredis.New(t), src, change...)
}

func build(t *testing.T, db *redisdb.DB, src *sources, change ...func(*Options)) *bundle {
	t.Helper()
	b := &bundle{t: t, spool: &spool{tasks: map[string]queue.Task{}}, log: new(safeBuffer)}
	o := Options{
		AllowPrivate: true, Secret: serviceSecret, Version: "1.2.3", Backoff: queue.Backoff{Base: 5 * time.Second,
			Factor: 2},
		Logger: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if src != nil {
		o.Implicit, o.ServiceURL = src.Implicit, src.ServiceURL
	}
	for _, c := range change {
		c(&o)
	}
	w, err := New(db, queue.NewClient(db.Client(), queue.Options{}), queue.NewControl(db.Client()), testRing(t),
		o)
	if err != nil {
		t.Fatal(err)
	}
	w.now, w.enqueue, w.states, w.runNow = b.clock, b.spool.Enqueue, b.spool.States, b.spool.RunNow
	b.Webhooks = w
	t.Cleanup(w.poster.client.CloseIdleConnections)
	return b
}

func (b *bundle) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Add(b.skew)
}

// advance moves the clock.
func (b *bundle) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.skew += d
}

// endpoint makes an endpoint for a URL.
func (b *bundle) endpoint(url string, change ...func(*api.EndpointRequest)) api.Endpoint {
	b.t.Helper()
	r := api.EndpointRequest{URL: url}
	for _, c := range change {
		c(&r)
	}
	e, err := b.Create(b.t.Context(), r)
	if err != nil {
		b.t.Fatalf("create endpoint: %v", err)
	}
	return e
}

// emit appends an event to the stream of partition 0, as outbox does.
func (b *bundle) emit(id string, kind event.Type, account string) event.Event {
	b.t.Helper()
	e, err := event.New(id, kind, account, b.clock(), event.Sent{
		Message: event.Message{QueueID: "Q" + id, MessageID: "<" + id + "@example.com>", Envelope: event.Envelope{
			From: "a@example.com", To: []string{"b@example.net"}}},
		Response: "250 2.0.0 Ok", Accepted: []string{"b@example.net"},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	line, err := json.Marshal(e)
	if err != nil {
		b.t.Fatal(err)
	}
	b.append(string(line))
	return e
}

// append adds a line to the stream of partition 0.
func (b *bundle) append(line string) {
	b.t.Helper()
	if err := b.db.Client().Do(b.t.Context(), "XADD", redisdb.Key(0, stream), "*", streamField,
		line).Err(); err != nil {
		b.t.Fatal(err)
	}
}

// fanOutAll fans out everything in the stream, as if nothing of it had ever been acknowledged.
func (b *bundle) fanOutAll() {
	b.t.Helper()
	if err := b.fanOut(b.t.Context(), b.entries()); err != nil {
		b.t.Fatalf("fan out: %v", err)
	}
}

func (b *bundle) entries() []redisdb.Entry {
	b.t.Helper()
	messages, err := b.db.Client().XRange(b.t.Context(), redisdb.Key(0, stream), "-", "+").Result()
	if err != nil {
		b.t.Fatal(err)
	}
	entries := make([]redisdb.Entry, len(messages))
	for i, m := range messages {
		entries[i] = redisdb.Entry{ID: m.ID, Values: m.Values}
	}
	return entries
}

// run runs the task of a delivery once and gives the name of the verdict.
func (b *bundle) run(endpoint, delivery string) string {
	b.t.Helper()
	return b.Deliver(b.t.Context(), ref{Endpoint: endpoint, Delivery: delivery}.task()).String()
}

// delivery reads a delivery.
func (b *bundle) delivery(endpoint, id string) api.Delivery {
	b.t.Helper()
	d, err := b.Delivery(b.t.Context(), endpoint, id)
	if err != nil {
		b.t.Fatalf("read delivery %s of %s: %v", id, endpoint, err)
	}
	return d
}

// spool is a queue that only remembers what was put in.
type spool struct {
	mu    sync.Mutex
	tasks map[string]queue.Task
	state map[string]queue.State
	fail  error
	run   []string // ids that had to be run now
}

func (s *spool) RunNow(_ context.Context, _ string, ids ...string) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = append(s.run, ids...)
	return make([]error, len(ids))
}

func (s *spool) Enqueue(_ context.Context, tasks ...queue.Task) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(tasks))
	for i, t := range tasks {
		if errs[i] = s.fail; s.fail == nil {
			s.tasks[t.ID] = t
		}
	}
	return errs
}

func (s *spool) States(_ context.Context, _ string, ids ...string) ([]queue.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]queue.State, len(ids))
	for i, id := range ids {
		if _, ok := s.tasks[id]; ok {
			states[i] = "pending"
		}
		if forced, ok := s.state[id]; ok {
			states[i] = forced
		}
	}
	return states, nil
}

func (s *spool) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.tasks))
	for id := range s.tasks {
		ids = append(ids, id)
	}
	return ids
}

// receiver is an endpoint that keeps what it receives and answers as configured.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
	answer   func(n int, w http.ResponseWriter, r *http.Request) // n counts from 1; defaults to 200
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	rc := &receiver{answer: answer}
	rc.Server = httptest.NewServer(rc)
	t.Cleanup(rc.Close)
	return rc
}

// answering gives a receiver one status for ever.
func answering(t *testing.T, status int) *receiver {
	return newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	rc.mu.Lock()
	rc.requests = append(rc.requests, received{header: r.Header.Clone(), body: body})
	n := len(rc.requests)
	rc.mu.Unlock()
	if rc.answer != nil {
		rc.answer(n, w, r)
	}
}

func (rc *receiver) got() []received {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return append([]received(nil), rc.requests...)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// testRing is a key ring with a key of the tests.
func testRing(t *testing.T) *seal.Ring {
	t.Helper()
	ring, err := seal.New([]byte("a secret of thirty-two bytes or more for tests"))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// safeBuffer collects a log.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// cancelled gives a context that a test ends.
func cancelled(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

func deadline(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

func dbOptions(url string) redisdb.Options { return redisdb.Options{URL: url} }
