package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// world is a Postroom whose gateway is the endpoint.
type world struct {
	*apptest.Postroom
	url string

	mu        sync.Mutex
	delivered map[string]int // by recipient
	failing   bool           // the next delivery fails
	headers   http.Header    // of the last request
	body      []byte
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{delivered: map[string]int{}}
	signed, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{signed: signed, deliver: w.deliver}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		w.headers, w.body = r.Header.Clone(), body
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		e.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	w.Postroom = apptest.Start(t, map[string]string{"delivery.retry.base": "100ms"})
	if _, err := api.CreateGateway.Do(t.Context(), w.Client, api.Gateway{Gateway: "own", Name: "Own",
		Type: api.GatewayHTTP, API: &api.GatewayAPI{URL: server.URL, Secret: secret}}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) deliver(m mail, to string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing {
		w.failing = false
		return errors.New("the program is busy")
	}
	if bytes.Contains(m.Raw, []byte("Subject: Hello")) && m.From != "" {
		w.delivered[to]++
	}
	return nil
}

func (w *world) count(to string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.delivered[to]
}

// again sends the last request once more, with some changes.
func (w *world) again(t *testing.T, change func(http.Header, []byte) []byte) (status int, answer string) {
	t.Helper()
	w.mu.Lock()
	headers, body := w.headers.Clone(), bytes.Clone(w.body)
	w.mu.Unlock()
	body = change(headers, body)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = headers
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, string(raw)
}

// TestEachMessageOnce: a recipient for whom the delivery fails is tried again, a request that is repeated is
// answered as before, and nobody gets a second copy.
func TestEachMessageOnce(t *testing.T) {
	w := setup(t)
	w.failing = true
	apptest.SubmitTo(t, w.Client, api.SubmitRequest{Subject: "Hello", Text: "Hello", Gateway: "own"},
		"ann@example.net", "bob@example.net")
	apptest.Eventually(t, "both get it", func() bool {
		return w.count("ann@example.net") == 1 && w.count("bob@example.net") == 1
	})
	status, answer := w.again(t, func(_ http.Header, body []byte) []byte { return body })
	if status != http.StatusOK || !strings.Contains(answer, `"status":"accepted"`) {
		t.Errorf("a repeat is answered %d %s", status, answer)
	}
	if ann, bob := w.count("ann@example.net"), w.count("bob@example.net"); ann != 1 || bob != 1 {
		t.Errorf("delivered %d and %d times", ann, bob)
	}
}

// TestCheck: verifying the gateway sends nothing.
func TestCheck(t *testing.T) {
	w := setup(t)
	answer, err := api.VerifyAccount.Do(t.Context(), w.Client, api.VerifyRequest{Gateway: "own"})
	if err != nil || !answer.SMTP.Success {
		t.Errorf("%+v, %v", answer, err)
	}
	if len(w.delivered) != 0 {
		t.Errorf("delivered %v", w.delivered)
	}
	for name, change := range map[string]func(http.Header, []byte) []byte{
		"another body": func(_ http.Header, b []byte) []byte { return append(b, ' ') },
		"an old time":  func(h http.Header, b []byte) []byte { h.Set("Webhook-Timestamp", "1"); return b },
		"no signature": func(h http.Header, b []byte) []byte { h.Del("Webhook-Signature"); return b },
	} {
		if status, _ := w.again(t, change); status != http.StatusUnauthorized {
			t.Errorf("%s is answered %d", name, status)
		}
	}
}
