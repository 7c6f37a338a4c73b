package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/postroom/postroom/internal/telemetry"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// TestOff: without an endpoint nothing is begun, stored or allocated.
func TestOff(t *testing.T) {
	off, err := telemetry.New(t.Context(), telemetry.Options{})
	if err != nil || off != nil {
		t.Fatalf("%v, %v", off, err)
	}
	ctx, h := t.Context(), http.Header{"Traceparent": {parent}}
	if n := testing.AllocsPerRun(100, func() {
		ctx := off.Incoming(off.Continue(ctx, parent), h)
		ctx, span := off.Root(ctx, "a", telemetry.Serves)
		ctx, child := off.Child(ctx, "b", telemetry.Asks)
		child.Set("c", "d")
		child.SetInt("e", 1)
		child.Fail("f")
		child.End()
		span.End()
		if off.Carrier(ctx) != "" {
			t.Error("it has a carrier")
		}
		off.Outgoing(ctx, h)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := off.Close(ctx); err != nil || len(h) != 1 {
		t.Errorf("%v, %v", err, h)
	}
}

// open returns a Tracer with a share of new traces.
func open(t *testing.T, endpoint string, share float64, reg prometheus.Registerer) *telemetry.Tracer {
	t.Helper()
	on, err := telemetry.New(t.Context(), telemetry.Options{Endpoint: endpoint, Share: share, Registry: reg,
		Every: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = on.Close(ctx) // the collector of some tests is away
	})
	return on
}

// TestCarriers: a trace that came in goes out and is stored, and invalid headers are ignored.
func TestCarriers(t *testing.T) {
	t.Parallel()
	on := open(t, "http://127.0.0.1:9", 0, nil)
	long := make([]byte, 600)
	for i := range long {
		long[i] = 'a'
	}
	for _, c := range []struct{ parent, state, want, id string }{
		{parent, "shop=cart", parent + " shop=cart", "0af7651916cd43dd8448eb211c80319c"},
		{parent, "", parent, "0af7651916cd43dd8448eb211c80319c"},
		{parent, "shop=" + string(long), parent, "0af7651916cd43dd8448eb211c80319c"},
		{parent, "wrong", parent, "0af7651916cd43dd8448eb211c80319c"},
		{"00-00000000000000000000000000000000-b7ad6b7169203331-01", "", "", ""},
		{"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "", "", ""},
		{"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "", "", ""},
		{"nonsense\r\nX: y", "", "", ""},
		{"", "shop=cart", "", ""},
	} {
		h := http.Header{"Traceparent": {c.parent}, "Tracestate": {c.state}}
		got := on.Carrier(on.Incoming(t.Context(), h))
		if got != c.want || telemetry.ID(got) != c.id {
			t.Errorf("%q %q: stored as %q, id %q", c.parent, c.state, got, telemetry.ID(got))
		}
		out := http.Header{}
		on.Outgoing(on.Continue(t.Context(), got), out)
		if sent := out.Get("Traceparent"); sent != c.want && sent+" "+out.Get("Tracestate") != c.want {
			t.Errorf("%q: sent as %v", got, out)
		}
	}
	for _, text := range []string{"", "x", "00-12-34", "----"} {
		if id := telemetry.ID(text); id != "" {
			t.Errorf("ID(%q) = %q", text, id)
		}
	}
}

// TestShare: with a share of 0 no new trace has spans, and callers' traces do as they say.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		share float64
		from  string
		want  float64
	}{{0, "", 0}, {1, "", 1}, {0, parent, 1}, {1, parent[:len(parent)-1] + "0", 0}} {
		reg := prometheus.NewRegistry()
		on := open(t, "http://127.0.0.1:9", c.share, reg)
		ctx, span := on.Root(on.Continue(t.Context(), c.from), "step", telemetry.Internal)
		if on.Carrier(ctx) == "" {
			t.Error("a trace without spans has no carrier: what follows would begin another")
		}
		span.End()
		if n := count(t, reg, "made"); n != c.want {
			t.Errorf("share %v from %q: %v spans", c.share, c.from, n)
		}
	}
}

func count(t *testing.T, reg *prometheus.Registry, state string) float64 {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if family.GetName() == "postroom_traces_spans_total" && m.GetLabel()[0].GetValue() == state {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric of spans %s", state)
	return 0
}

// TestACollectorThatHangs delays nobody: spans are dropped, and Close ends with its context.
func TestACollectorThatHangs(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(end) })
	reg := prometheus.NewRegistry()
	on := open(t, hanging.URL, 1, reg)
	const n = 20_000
	began := time.Now()
	for range n {
		_, span := on.Root(t.Context(), "step", telemetry.Internal)
		span.End()
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%d spans took %v", n, took)
	}
	if made, sent := count(t, reg, "made"), count(t, reg, "sent"); made != n || sent != 0 {
		t.Errorf("%v made, %v sent", made, sent)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began = time.Now()
	if err := on.Close(ctx); err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("closed after %v: %v", time.Since(began), err)
	}
}

// TestACollectorThatIsAway: what it refuses is counted as lost.
func TestACollectorThatIsAway(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	reg := prometheus.NewRegistry()
	on := open(t, refusing.URL+"/otlp/v1/traces", 1, reg)
	_, span := on.Root(t.Context(), "step", telemetry.Internal)
	span.End()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for limit := time.After(20 * time.Second); count(t, reg, "lost") != 1; {
		select {
		case <-again.C:
		case <-limit:
			t.Fatal("the span is not lost")
		}
	}
	if n := testutil.CollectAndCount(reg); n != 3 {
		t.Errorf("%d counters", n)
	}
}

// TestHeaders reads the setting, and names it where it is wrong.
func TestHeaders(t *testing.T) {
	t.Parallel()
	got, err := telemetry.ReadHeaders(" Authorization=Bearer a=b , X-Scope = c,")
	if err != nil || len(got) != 2 || got["Authorization"] != "Bearer a=b" || got["X-Scope"] != "c" {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"Authorization", "=x", "a=b,c"} {
		if _, err := telemetry.ReadHeaders(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, endpoint := range []string{"collector:4318", "http://", "%"} {
		if _, err := telemetry.New(t.Context(), telemetry.Options{Endpoint: endpoint}); err == nil {
			t.Errorf("the endpoint %q is taken", endpoint)
		}
	}
}
