package server

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// logs collects what a server logs, at all levels.
type logs struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// TestInternalErrorsNeverReachClients makes every part fail with a secret in its error, and calls every
// route.
func TestInternalErrorsNeverReachClients(t *testing.T) {
	t.Parallel()
	const secret = "password=hunter2"
	var log logs
	w := setup(t, func(o *Options) { o.Logger = log.logger() })
	failures := map[string]error{
		"plain":    errors.New("dial tcp 10.0.0.1:6379: " + secret),
		"internal": fault.New(fault.Internal, "Oops", secret),
		"wrapped":  fault.Wrap(errors.New(secret), fault.Unavailable, "RedisAway", "Redis is away"),
	}
	for name, err := range failures {
		w.parts.failWith(err)
		for _, g := range w.routes() {
			for _, r := range g.routes {
				got := w.call(t, r, adminToken)
				if strings.Contains(got.body, "hunter2") || strings.Contains(fmt.Sprint(got.header), "hunter2") {
					t.Errorf("%s: %s %s tells the client %s", name, r.method, r.path, got.body)
				}
				if got.status == http.StatusInternalServerError && !strings.Contains(log.text(), got.problem.RequestID) {
					t.Errorf("%s: %s %s: request %s can't be found in the log", name, r.method, r.path,
						got.problem.RequestID)
				}
			}
		}
	}
	if !strings.Contains(log.text(), secret) {
		t.Error("the log, for those who may see it, lacks the cause")
	}
}

func TestPanicIsAnswered(t *testing.T) {
	t.Parallel()
	var log logs
	w := setup(t, func(o *Options) { o.Logger = log.logger() })
	w.parts.submit = func(api.SubmitRequest) (api.SubmitAnswer, error) { panic("hunter2") }
	got := w.do(t, "POST", "/v1/submit", adminToken, `{"to":{"address":"a@example.net"}}`)
	if got.status != 500 || strings.Contains(got.body, "hunter2") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if !strings.Contains(log.text(), "hunter2") || !strings.Contains(log.text(), "hardening_test.go") {
		t.Error("the log lacks the panic or its stack")
	}
}

// TestHugeBodyIsRefusedUnread announces 200 MB and sends none of it: the answer comes anyway, and the
// connection ends.
func TestHugeBodyIsRefusedUnread(t *testing.T) {
	t.Parallel()
	w := setup(t)
	conn, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/submit HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", adminToken, 200<<20)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var p api.Problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || resp.StatusCode != 413 || !resp.Close ||
		p.StatusCode != 413 {
		t.Errorf("got %s, close %v, %+v, %v", resp.Status, resp.Close, p, err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection stays open: %v", err)
	}
}

// endless is a body that never ends, and counts what was taken of it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func TestEndlessBodyIsCutOff(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.MaxMessage = 1 << 20 })
	body := &endless{}
	req, err := http.NewRequestWithContext(t.Context(), "POST", w.URL()+"/v1/submit", io.NopCloser(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err == nil { // otherwise the server was faster to close than the client to read
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("got %d", resp.StatusCode)
		}
	}
	if read := body.read.Load(); read > 64<<20 {
		t.Errorf("%d MB were taken", read>>20)
	}
	w.parts.isEmpty(t)
}

// TestUnauthorizedBodyIsNotRead: who is not let in doesn't get to send anything.
func TestUnauthorizedBodyIsNotRead(t *testing.T) {
	t.Parallel()
	w := setup(t)
	got := w.do(t, "POST", "/v1/submit", "stolen", `{bad`)
	if got.status != 401 {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// TestLargeAttachmentIsHeldTwice: once as text, in a buffer that grows, and once decoded. 12 MB of attachment
// make 16 MB of text.
func TestLargeAttachmentIsHeldTwice(t *testing.T) {
	w := setup(t)
	var received []byte
	w.parts.submit = func(req api.SubmitRequest) (api.SubmitAnswer, error) {
		received = req.Attachments[0].Content
		return api.SubmitAnswer{QueueID: "q1", Response: "Queued for delivery", MessageID: "<1@x>"}, nil
	}
	file := make([]byte, 12<<20)
	if _, err := rand.Read(file); err != nil {
		t.Fatal(err)
	}
	body := `{"to":{"address":"a@example.net"},"attachments":[{"filename":"a.bin","content":"` +
		base64.StdEncoding.EncodeToString(file) + `"}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := w.do(t, "POST", "/v1/submit", adminToken, body)
	runtime.ReadMemStats(&after)
	if got.status != 200 || !bytes.Equal(received, file) {
		t.Fatalf("got %d %.200s", got.status, got.body)
	}
	if allocated := int64(after.TotalAlloc - before.TotalAlloc); allocated > 48<<20 {
		t.Errorf("%d MB were allocated for a body of %d MB", allocated>>20, len(body)>>20)
	}
}

// TestLargeBodiesTakeTurns: with room for one, the second waits until the first is answered, and small ones
// pass by.
func TestLargeBodiesTakeTurns(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.MaxMessage, o.BodyMemory = 2<<20, 1 })
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	w.parts.submit = func(req api.SubmitRequest) (api.SubmitAnswer, error) {
		if len(req.Text) > smallBody {
			entered <- struct{}{}
			<-leave
		}
		return api.SubmitAnswer{QueueID: "q1", MessageID: "<1@x>", Response: "Queued for delivery"}, nil
	}
	large := api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}}, Text: strings.Repeat("x", 2<<20)}
	answers := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := api.Submit.Do(t.Context(), w.client, large)
			answers <- err
		}()
	}
	<-entered
	if _, err := api.Submit.Do(t.Context(), w.client, api.SubmitRequest{Text: "small"}); err != nil {
		t.Errorf("a small one: %v", err)
	}
	select {
	case <-entered:
		t.Error("both were let in at once")
	default:
	}
	close(leave)
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("a large one: %v", err)
		}
	}
}

// TestLargeBodiesAreWorkedOnAFewAtATime: at most one for each processor, and all are accepted in the end.
func TestLargeBodiesAreWorkedOnAFewAtATime(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.MaxMessage = 2 << 20 })
	processors := int64(min(runtime.GOMAXPROCS(0), runtime.NumCPU()))
	var inHand, most atomic.Int64
	full := make(chan struct{})
	w.parts.submit = func(api.SubmitRequest) (api.SubmitAnswer, error) {
		n := inHand.Add(1)
		defer inHand.Add(-1)
		if n == processors {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		<-full // as many as there may be are here
		for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
		}
		return api.SubmitAnswer{QueueID: "q1", MessageID: "<1@x>", Response: "Queued for delivery"}, nil
	}
	large := api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}}, Text: strings.Repeat("x", 2<<20)}
	var group sync.WaitGroup
	for range 4 * processors {
		group.Go(func() {
			if _, err := api.Submit.Do(t.Context(), w.client, large); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if most.Load() != processors {
		t.Errorf("%d were in hand at once, on %d processors", most.Load(), processors)
	}
}

// TestAWaitingBodyIsForgottenWithItsClient: a client that goes away while its body waits for its turn leaves
// nothing behind.
func TestAWaitingBodyIsForgottenWithItsClient(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.MaxMessage = 2 << 20 })
	processors := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	entered, leave := make(chan struct{}, processors), make(chan struct{})
	w.parts.submit = func(api.SubmitRequest) (api.SubmitAnswer, error) {
		entered <- struct{}{}
		<-leave
		return api.SubmitAnswer{QueueID: "q1", MessageID: "<1@x>", Response: "Queued for delivery"}, nil
	}
	large := api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}}, Text: strings.Repeat("x", 2<<20)}
	body, err := json.Marshal(large)
	if err != nil {
		t.Fatal(err)
	}
	held := func(bodies int) bool { // that many or fewer
		most := int64(bodies) * int64(len(body)+memoryStep)
		return w.bodies.submits.Free() >= w.opts.BodyMemory-w.opts.maxSubmit()-most
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer close(leave)
	for range processors {
		group.Go(func() {
			if _, err := api.Submit.Do(t.Context(), w.client, large); err != nil {
				t.Error(err)
			}
		})
	}
	for range processors {
		<-entered
	}
	ctx, giveUp := context.WithCancel(t.Context())
	group.Go(func() {
		if _, err := api.Submit.Do(ctx, w.client, large); err == nil {
			t.Error("it was taken although its client was gone")
		}
	})
	until(t, "it waits", func() bool { return !held(processors) })
	giveUp()
	until(t, "it is forgotten", func() bool { return held(processors) })
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("never: ", what)
		}
	}
}

// TestProbes: load balancers ask with HEAD, and ids may hold any character.
func TestProbes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if got := w.do(t, "HEAD", "/health", "", ""); got.status != 200 || got.body != "" {
		t.Errorf("HEAD /health: %d %q", got.status, got.body)
	}
	if got := w.do(t, "PUT", "/health", "", "{}"); got.status != 405 ||
		!strings.Contains(got.header.Get("Allow"), "GET") {
		t.Errorf("PUT /health: %d, Allow %q", got.status, got.header.Get("Allow"))
	}
	if _, err := api.GetMessage.Do(t.Context(), w.client, "a/b ü?"); !refused(err, 404) ||
		!strings.Contains(err.Error(), `"a/b ü?"`) {
		t.Error(err)
	}
	if got := w.do(t, "GET", "/health", "", "", "X-Long", strings.Repeat("x", 64<<10)); got.status != 431 {
		t.Errorf("a header of 64 KB: %d", got.status)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, tc := range []struct{ given, want string }{
		{"abc-123.x:y_Z", "abc-123.x:y_Z"}, {"", ""}, {`x"y`, ""}, {strings.Repeat("x", 65), ""}, {"a b", ""},
	} {
		got := w.do(t, "GET", "/health", "", "", "X-Request-Id", tc.given).header.Get("X-Request-Id")
		if tc.want != "" && got != tc.want || got == "" || tc.want == "" && got == tc.given {
			t.Errorf("given %q: %q", tc.given, got)
		}
	}
}

func TestTokensAreNotLogged(t *testing.T) {
	t.Parallel()
	var log logs
	w := setup(t, func(o *Options) { o.Logger = log.logger() })
	w.do(t, "GET", "/v1/outbox?search=hello&access_token="+adminToken, "", "")
	w.do(t, "GET", "/v1/outbox?search=hello&access%5Ftoken="+adminToken, "", "")
	w.do(t, "GET", "/v1/outbox", adminToken, "", "Cookie", "postroom_session=session-of-"+adminToken)
	w.do(t, "GET", "/v1/outbox?%zz&access_token="+adminToken, "", "")
	w.do(t, "POST", "/webhooks/provider/mailjet?token="+adminToken, "", "{}")
	if text := log.text(); strings.Contains(text, adminToken) || !strings.Contains(text, "search=hello") {
		t.Errorf("log:\n%s", text)
	}
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	w := setup(t)
	h := w.do(t, "GET", "/v1/outbox", adminToken, "").header
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cache-Control":           "no-store",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Access-Control-Allow-Origin": "",
		"Content-Type": "application/json; charset=utf-8",
	} {
		if h.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, h.Get(name), want)
		}
	}
}

func TestListsAreCompressed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for range 50 {
		w.parts.queued(t, "acme")
	}
	got := w.do(t, "GET", "/v1/outbox?pageSize=50", adminToken, "", "Accept-Encoding", "gzip")
	if got.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("headers: %v", got.header)
	}
	zip, err := gzip.NewReader(strings.NewReader(got.body))
	if err != nil {
		t.Fatal(err)
	}
	var page api.OutboxPage
	if err := json.NewDecoder(zip).Decode(&page); err != nil || len(page.Messages) != 50 {
		t.Errorf("%d messages, %v", len(page.Messages), err)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	w := setup(t, func(o *Options) { o.Metrics = reg })
	w.parts.account(t, "acme")
	w.do(t, "POST", "/v1/submit", adminToken, `{"to":{"address":"a@example.net"}}`)
	w.do(t, "POST", "/v1/account/acme/submit", adminToken, `{"to":{"address":"a@example.net"},"dryRun":true}`)
	w.do(t, "POST", "/v1/submit", adminToken, `{`)
	w.do(t, "POST", "/v1/submit", "stolen", `{}`)
	w.do(t, "POST", "/v1/submit", adminToken, `x`, "Content-Type", "text/plain")
	w.do(t, "GET", "/wp-login.php?x=1", "", "")
	page := w.do(t, "GET", "/metrics", adminToken, "").body
	for _, line := range []string{
		`postroom_submits_total{outcome="accepted"} 1`,
		`postroom_submits_total{outcome="dry_run"} 1`,
		`postroom_submits_total{outcome="invalid"} 2`,
		`postroom_submits_total{outcome="unauthorized"} 1`,
		`postroom_submits_total{outcome="unavailable"} 0`,
		`postroom_http_request_duration_seconds_count{method="POST",route="/v1/submit",status="2xx"} 1`,
		`postroom_http_request_duration_seconds_count{method="any",route="other",status="4xx"} 1`,
		`postroom_http_requests_in_flight 1`,
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Contains(page, "wp-login") {
		t.Error("unauthenticated clients can make label values")
	}
}
