package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
)

// ledger counts how often each event was handled, and keeps the last request.
type ledger struct {
	mu      sync.Mutex
	counts  map[string]int
	failing bool // the next event can't be handled
	headers http.Header
	body    []byte
}

func (l *ledger) handle(e event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing {
		l.failing = false
		return errors.New("the database is away")
	}
	l.counts[e.Type]++
	return nil
}

func (l *ledger) all() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

// fail makes the next event one that can't be handled.
func (l *ledger) fail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failing = true
}

// last is the last request as it came.
func (l *ledger) last() (http.Header, []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.headers.Clone(), bytes.Clone(l.body)
}

// keep remembers a request on its way to the receiver.
func (l *ledger) keep(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		l.mu.Lock()
		l.headers, l.body = r.Header.Clone(), body
		l.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// world is a Postroom whose webhooks go to a receiver.
type world struct {
	*apptest.Postroom
	*ledger
	endpoint api.Endpoint
	url      string
}

func setup(t *testing.T) world {
	t.Helper()
	p := apptest.Start(t, map[string]string{"delivery.retry.base": "100ms"})
	l := &ledger{counts: map[string]int{}}
	key := []byte("a secret of thirty-two characters")
	server := httptest.NewServer(l.keep(newReceiver(key, l.handle)))
	t.Cleanup(server.Close)
	e, err := api.CreateEndpoint.Do(t.Context(), p.Client, api.EndpointRequest{
		URL: server.URL, Secret: "whsec_" + base64.StdEncoding.EncodeToString(key), Events: []string{
			"messageSent", "webhookTest"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return world{p, l, e, server.URL}
}

func (w world) submit(t *testing.T) {
	t.Helper()
	if _, err := api.Submit.Do(t.Context(), w.Client, api.SubmitRequest{
		To: api.Addresses{{Address: "ann@example.net"}}, Text: "Hello"}); err != nil {
		t.Fatal(err)
	}
}

// TestEachEventOnce handles an event once that was sent three times: the first time it could not be handled,
// and later it was redelivered.
func TestEachEventOnce(t *testing.T) {
	w := setup(t)
	w.fail()
	w.submit(t)
	eventually(t, "the event is handled", func() bool { return w.all()["messageSent"] == 1 })
	page, err := api.ListDeliveries.Do(t.Context(), w.Client, api.DeliveryQuery{PageSize: 10}, w.endpoint.ID)
	if err != nil || page.Total != 1 {
		t.Fatalf("deliveries: %+v, %v", page, err)
	}
	again, err := api.Redeliver.Do(t.Context(), w.Client, w.endpoint.ID, page.Deliveries[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the event is delivered again", func() bool {
		d, err := api.GetDelivery.Do(t.Context(), w.Client, w.endpoint.ID, again.ID)
		return err == nil && d.Status == "delivered"
	})
	if n := w.all()["messageSent"]; n != 1 {
		t.Errorf("handled %d times, want 1", n)
	}
}

// TestSecretChanges goes on with the old secret for a while after the endpoint was given a new one.
func TestSecretChanges(t *testing.T) {
	w := setup(t)
	newSecret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret of thirty-two bytes"))
	if _, err := api.UpdateEndpoint.Do(t.Context(), w.Client, api.EndpointRequest{URL: w.url, Secret: newSecret},
		w.endpoint.ID); err != nil {
		t.Fatal(err)
	}
	tested, err := api.TestEndpoint.Do(t.Context(), w.Client, api.EndpointTest{}, w.endpoint.ID)
	if err != nil || !tested.Success {
		t.Errorf("test: %+v, %v", tested, err)
	}
}

// TestForgeriesAreRefused changes a real request in every way that matters.
func TestForgeriesAreRefused(t *testing.T) {
	w := setup(t)
	tested, err := api.TestEndpoint.Do(t.Context(), w.Client, api.EndpointTest{}, w.endpoint.ID)
	if err != nil || !tested.Success {
		t.Fatalf("test: %+v, %v", tested, err)
	}
	real, body := w.last()
	cases := []struct {
		name   string
		change func(h http.Header, body []byte) []byte
		want   int
	}{
		{"as it was", func(_ http.Header, b []byte) []byte { return b }, http.StatusNoContent},
		{"another body", func(_ http.Header, b []byte) []byte { return append(b, ' ') }, http.StatusUnauthorized},
		{"another id", func(h http.Header, b []byte) []byte { h.Set("Webhook-Id", "x"); return b },
			http.StatusUnauthorized},
		{"another time", func(h http.Header, b []byte) []byte { h.Set("Webhook-Timestamp", "1"); return b },
			http.StatusUnauthorized},
		{"no signature", func(h http.Header, b []byte) []byte { h.Del("Webhook-Signature"); return b },
			http.StatusUnauthorized},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			headers := real.Clone()
			changed := tc.change(headers, bytes.Clone(body))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, bytes.NewReader(changed))
			if err != nil {
				t.Fatal(err)
			}
			for name := range headers {
				if strings.HasPrefix(name, "Webhook-") {
					req.Header.Set(name, headers.Get(name))
				}
			}
			answer, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if err := answer.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode != tc.want {
				t.Errorf("answered %d, want %d", answer.StatusCode, tc.want)
			}
		})
	}
}

// TestSnippetsOfTheDocumentation holds docs/webhooks.md to its word: its Go is this program's, its Python
// verifies a real request.
func TestSnippetsOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(program, block(t, page, "go")) {
		t.Error("the Go of docs/webhooks.md is not that of main.go")
	}

	w := setup(t)
	tested, err := api.TestEndpoint.Do(t.Context(), w.Client, api.EndpointTest{}, w.endpoint.ID)
	if err != nil || !tested.Success {
		t.Fatalf("test: %+v, %v", tested, err)
	}
	request, body := w.last()
	headers := map[string]string{}
	for name := range request {
		headers[strings.ToLower(name)] = request.Get(name)
	}
	args, err := json.Marshal(map[string]any{"headers": headers, "body": string(body),
		"secret": w.endpoint.Secret})
	if err != nil {
		t.Fatal(err)
	}
	const ask = "\nimport json, sys\n" +
		"a = json.load(sys.stdin)\n" +
		"b = a['body'].encode()\n" +
		"print(verify(a['secret'], a['headers'], b), verify(a['secret'], a['headers'], b + b' '))\n"
	cmd := exec.CommandContext(t.Context(), "python3", "-c", string(block(t, page, "python"))+ask)
	cmd.Stdin = bytes.NewReader(args)
	out, err := cmd.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "True False" {
		t.Errorf("Python says %q, %v; want True False", got, err)
	}
}

// block is the code of a language on a page.
func block(t *testing.T, page []byte, language string) []byte {
	t.Helper()
	found := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatalf("docs/webhooks.md has no %s", language)
	}
	return found[1]
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("within a minute: %s", what)
		}
	}
}
