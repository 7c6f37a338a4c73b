package e2e_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// gathered is a collector of traces: OTLP over HTTP in protobuf.
type gathered struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
	asked []*http.Request
	raw   bytes.Buffer // all that was sent
}

func gather(t *testing.T) *gathered {
	t.Helper()
	g := &gathered{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req collector.ExportTraceServiceRequest
		body, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(body)
		if err = cmp.Or(err, proto.Unmarshal(text, &req)); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked = append(g.asked, r)
		g.raw.Write(text)
		for _, of := range req.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				g.spans = append(g.spans, scope.GetSpans()...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(g.Close)
	return g
}

// of returns the names of a trace's spans, in order, and the spans by id.
func (g *gathered) of(trace string) (names []string, byID map[string]*tracepb.Span) {
	g.mu.Lock()
	defer g.mu.Unlock()
	byID = map[string]*tracepb.Span{}
	for _, s := range g.spans {
		if hex.EncodeToString(s.GetTraceId()) == trace {
			names = append(names, s.GetName())
			byID[hex.EncodeToString(s.GetSpanId())] = s
		}
	}
	slices.Sort(names)
	return names, byID
}

// outside sends requests with a traceparent, as a program with traces of its own does.
type outside struct{ parent string }

func (o outside) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", o.parent)
	r.Header.Set("Tracestate", "shop=cart")
	return http.DefaultTransport.RoundTrip(r)
}

// traced is a Postroom with a relay and an endpoint, and the requests that the endpoint got.
type traced struct {
	plain, outside *api.Client // without and with a trace
	mu             sync.Mutex
	headers        []http.Header
}

func startTraced(t *testing.T, set map[string]string, parent string) *traced {
	t.Helper()
	relay := testsmtp.Start(t, testsmtp.Options{})
	p := &traced{}
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.headers = append(p.headers, r.Header)
	}))
	t.Cleanup(hooks.Close)
	for key, value := range map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "shop@example.com", "webhooks.allowPrivate": "true", "delivery.retry.base": "1s"} {
		set[key] = value
	}
	a := apptest.Run(t, set)
	p.plain = api.NewClient(a.URL(), a.Token(), nil)
	p.outside = api.NewClient(a.URL(), a.Token(), &http.Client{Transport: outside{parent}})
	if _, err := api.CreateEndpoint.Do(t.Context(), p.plain, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	return p
}

// send submits a message that its relay defers once, and waits for the webhook that it was sent.
func (p *traced) send(t *testing.T) api.LoggedMessage {
	t.Helper()
	answer, err := api.Submit.Do(t.Context(), p.outside, api.SubmitRequest{
		To: api.Addresses{{Address: "dot-451-1@example.net"}}, Subject: "Receipt of Ann", Text: "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	var m api.LoggedMessage
	apptest.Eventually(t, "the message was sent and told", func() bool {
		m, err = api.GetLoggedMessage.Do(t.Context(), p.plain, answer.QueueID)
		p.mu.Lock()
		defer p.mu.Unlock()
		return err == nil && m.Status == "sent" && len(p.headers) >= 2 // deferred, and sent
	})
	return m
}

const (
	outerTrace  = "0af7651916cd43dd8448eb211c80319c"
	outerParent = "00-" + outerTrace + "-b7ad6b7169203331-01"
)

// TestOneTraceFromSubmitToWebhook: a submit with a traceparent, a deferred attempt, one that succeeds, and
// the webhooks about them are spans of the caller's trace. No address is in any.
func TestOneTraceFromSubmitToWebhook(t *testing.T) {
	t.Parallel()
	g := gather(t)
	p := startTraced(t, map[string]string{"traces.endpoint": g.URL, "traces.headers": "X-Key=k1"}, outerParent)
	m := p.send(t)
	if m.TraceID != outerTrace {
		t.Errorf("the message shows the trace %q", m.TraceID)
	}
	p.mu.Lock()
	for _, h := range p.headers {
		if parent := h.Get("Traceparent"); !strings.HasPrefix(parent, "00-"+outerTrace+"-") ||
			parent == outerParent || h.Get("Tracestate") != "shop=cart" {
			t.Errorf("a webhook has the traceparent %q and the tracestate %q", parent, h.Get("Tracestate"))
		}
	}
	p.mu.Unlock()
	want := []string{"POST /v1/submit", "attempt", "attempt", "relay", "relay", "store", "submit", "webhook",
		"webhook"}
	var names []string
	var byID map[string]*tracepb.Span
	apptest.Eventually(t, "the spans came", func() bool {
		names, byID = g.of(outerTrace)
		return len(names) >= len(want)
	})
	for _, name := range want {
		i := slices.Index(names, name)
		if i < 0 {
			t.Fatalf("spans %q", names)
		}
		names = slices.Delete(names, i, i+1)
	}
	for id, s := range byID {
		parent := hex.EncodeToString(s.GetParentSpanId())
		if byID[parent] == nil && parent != "b7ad6b7169203331" {
			t.Errorf("span %s (%s) has the parent %s, which is not there", s.GetName(), id, parent)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if key := g.asked[0].Header.Get("X-Key"); key != "k1" {
		t.Errorf("the collector was asked with the key %q", key)
	}
	for _, secret := range []string{"example.net", "example.com", "Receipt of Ann"} {
		if bytes.Contains(g.raw.Bytes(), []byte(secret)) {
			t.Errorf("a span has %q", secret)
		}
	}
}

// TestWithoutTracesNothingIsStored: without traces.endpoint a traceparent goes nowhere.
func TestWithoutTracesNothingIsStored(t *testing.T) {
	t.Parallel()
	p := startTraced(t, map[string]string{}, outerParent)
	if m := p.send(t); m.TraceID != "" {
		t.Errorf("the message shows the trace %q", m.TraceID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.headers {
		if h.Get("Traceparent") != "" || h.Get("Tracestate") != "" {
			t.Errorf("a webhook has the headers %v", h)
		}
	}
}
