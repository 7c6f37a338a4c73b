package outbox

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxSize: 4000})
	past, future := storyBegin.Add(-time.Hour), storyBegin.Add(time.Hour)
	to := api.Addresses{{Address: "ann@x.test"}}
	for name, c := range map[string]struct {
		req  api.SubmitRequest
		kind fault.Kind
		code string
		keys []string
	}{
		"nobody to write to": {api.SubmitRequest{Text: "x"}, fault.Invalid, "", []string{"to"}},
		"two faults at once": {api.SubmitRequest{To: api.Addresses{{Address: "nobody"}}, Text: "x",
			DeliverBy: &past}, fault.Invalid, "", []string{"deliverBy", "to[0].address"}},
		"a line break in a header": {api.SubmitRequest{To: to, Text: "x", Headers: api.Headers{
			"X-A": {"b\r\nBcc: eve@x.test"}}}, fault.Invalid, "", []string{"headers.X-A"}},
		"metadata not an object": {api.SubmitRequest{To: to, Text: "x", Metadata: []byte(`[1]`)}, fault.Invalid,
			"", []string{"metadata"}},
		"metadata too large": {
			api.SubmitRequest{To: to, Text: "x", Metadata: []byte(`{"a":"` + strings.Repeat("b", 5000) + `"}`)},
			fault.Invalid, "", []string{"metadata"}},
		"an empty tag": {api.SubmitRequest{To: to, Text: "x", Tags: []string{"a", ""}}, fault.Invalid,
			"", []string{"tags[1]"}},
		"raw and text": {api.SubmitRequest{Raw: []byte("To: ann@x.test\r\nFrom: a@b.test\r\n\r\nx"),
			Text: "x"}, fault.Invalid, "", []string{"raw"}},
		"no original recipient": {api.SubmitRequest{To: to, Text: "x", DSN: &api.DSN{Recipient: "nobody"}},
			fault.Invalid, "", []string{"dsn.recipient"}},
		"an envelope id of lines": {api.SubmitRequest{To: to, Text: "x", DSN: &api.DSN{ID: "order\r\n7"}},
			fault.Invalid, "", []string{"dsn.id"}},
		"an envelope id in German": {api.SubmitRequest{To: to, Text: "x", DSN: &api.DSN{ID: "Grüße"}},
			fault.Invalid, "", []string{"dsn.id"}},
		"a long envelope id": {
			api.SubmitRequest{To: to, Text: "x", DSN: &api.DSN{ID: strings.Repeat("x", 101)}}, fault.Invalid, "",
			[]string{"dsn.id"}},
		"never and success": {
			api.SubmitRequest{To: to, Text: "x", DSN: &api.DSN{Notify: []string{"never", "success"}}}, fault.Invalid,
			"", []string{"dsn.notify"}},
		"deliverBy before sendAt": {api.SubmitRequest{To: to, Text: "x", SendAt: &future,
			DeliverBy: ptr(future.Add(-time.Minute))}, fault.Invalid, "", []string{"deliverBy"}},
		"no such time zone": {api.SubmitRequest{To: to, Text: "x", TZ: "Mars/Olympus"}, fault.Invalid, "",
			[]string{"tz"}},
		"an unknown account": {api.SubmitRequest{Account: "gone", To: to, Text: "x"}, fault.NotFound,
			"AccountNotFound", nil},
		"an unknown gateway": {api.SubmitRequest{Gateway: "nowhere", To: to, Text: "x"}, fault.NotFound,
			"GatewayNotFound", nil},
		"too large": {api.SubmitRequest{To: to, Text: strings.Repeat("long ", 2000)}, fault.TooLarge,
			"MessageTooLarge", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.Intake.Submit(t.Context(), c.req)
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Kind != c.kind || f.Code != c.code {
				t.Fatalf("%v (%s %s), want %s %s", err, fault.KindOf(err), fault.CodeOf(err), c.kind, c.code)
			}
			var keys []string
			for _, field := range f.Fields {
				keys = append(keys, field.Key)
			}
			if diff := cmp.Diff(c.keys, keys); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
	if n, err := b.store.DB.Client().DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("refusals left %d keys behind, %v", n, err)
	}
}

func ptr[T any](v T) *T { return &v }

func TestDryRunQueuesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}},
		Text:   "x",
		DryRun: true})
	if err != nil || a.QueueID != "" || !strings.Contains(string(a.Preview), "To: ann@x.test\r\n") {
		t.Errorf("dry run: %+v, %v", a, err)
	}
	if n, err := b.store.DB.Client().DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("a dry run left %d keys behind, %v", n, err)
	}
}

// TestRawMessageSpeaksForItself submits a raw message with control headers for its time and its key.
func TestRawMessageSpeaksForItself(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	raw := "From: Shop <shop@example.com>\r\nTo: ann@x.test\r\nBcc: bob@x.test\r\nSubject: Raw\r\nX-EE-Send-At: 2030-01-02T05:00:00Z\r\n" +
		"X-Postroom-Idempotency-Key: k1\r\nX-EE-Delivery-Attempts: 4\r\n\r\nHello\r\n"
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Raw: []byte(raw)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.Reader.Get(t.Context(), a.QueueID)
	if err != nil {
		t.Fatal(err)
	}
	if m.Attempts != 4 || m.IdempotencyKey != "k1" ||
		!m.Scheduled.Equal(time.Date(2030, 1, 2, 5, 0, 0, 0, time.UTC)) || len(m.Envelope.To) != 2 {
		t.Errorf("queued as %+v", m)
	}
	content, err := b.Reader.Content(t.Context(), a.QueueID)
	if err != nil || strings.Contains(string(content), "bob@") || strings.Contains(string(content), "X-EE-") {
		t.Errorf("content %v:\n%s", err, content)
	}
}

// TestOneKeyManyClients submits the same body under one key from many clients on two processes: one message.
func TestOneKeyManyClients(t *testing.T) {
	t.Parallel()
	db := spread(t)
	first, second := setupOn(t, db, Options{}), setupOn(t, db, Options{})
	var mu sync.Mutex
	ids, misses := map[string]bool{}, 0
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			b := []*bundle{first, second}[i%2]
			a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}},
				Text:           "x",
				IdempotencyKey: "k"})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[a.QueueID] = true
			if a.Idempotency.Status == "MISS" {
				misses++
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 || misses != 1 {
		t.Errorf("%d messages, %d of them called new; want one", len(ids), misses)
	}
}

// TestLimitsRefuseNewWork fills the outbox to its limit, and Redis to its share of memory.
func TestLimitsRefuseNewWork(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxLive: 2})
	fill(t, b, 2)
	_, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}},
		Text: "x"})
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Unavailable || f.Code != "OutboxFull" ||
		f.RetryAfter == 0 {
		t.Errorf("beyond maxLive: %v", err)
	}

	small := testredis.Server(t, "--maxmemory", "8mb", "--maxmemory-policy", "noeviction")
	db, err := redisdb.Open(t.Context(), redisdb.Options{URL: small.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	full := setupOn(t, db, Options{MaxMemoryShare: 0.1})
	_, err = full.Intake.Submit(t.Context(), api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}},
		Text: "x"})
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Unavailable || f.Code != "OutboxFull" {
		t.Errorf("beyond the share of memory: %v", err)
	}
}

// TestTwoWorkersOneMessage has many workers begin the same message together: one sends.
func TestTwoWorkersOneMessage(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	id := fill(t, b, 2)[1]
	var wg sync.WaitGroup
	results := make([]string, 20)
	for i := range results {
		wg.Go(func() {
			results[i] = b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, fmt.Sprint(i))}).String()
		})
	}
	wg.Wait()
	done := 0
	for _, r := range results {
		if r == "done" {
			done++
		}
	}
	if done != 1 {
		t.Errorf("%d workers sent the message: %v", done, results)
	}
}

// TestSubmitAsEmailEngineTakesIt submits what EmailEngine's clients may write.
func TestSubmitAsEmailEngineTakesIt(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	got := b.inbox(t)
	answer, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@x.test"), Template: "welcome",
		Render:  &api.Render{Format: "markdown", Params: []byte(`{"name":"Ann"}`)},
		Headers: api.Headers{"X-Trace": {"one", "two"}}, Proxy: "socks5://proxy.test", LocalAddress: "10.0.0.9"})
	if err != nil {
		t.Fatal(err)
	}
	b.deliver(t, answer.QueueID)
	if len(got["ann@x.test"]) != 1 || !strings.Contains(string(got["ann@x.test"][0]),
		"X-Trace: one\r\nX-Trace: two\r\n") {
		t.Errorf("the relay got %s", got["ann@x.test"])
	}
	want := gateways.Path{Proxy: "socks5://proxy.test", LocalAddress: "10.0.0.9"}
	if b.sender.path != want {
		t.Errorf("sent by %+v", b.sender.path)
	}
}
