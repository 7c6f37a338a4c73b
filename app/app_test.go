package app_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestFirstMail is a first use: no Redis, no file, one relay. A message submitted over HTTP reaches the
// relay, and its webhook the receiver.
func TestFirstMail(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	hooks := receive(t)
	a := start(t, map[string]string{"smtp": relay.URL(), "from": "Shop <shop@example.com>",
		"webhooks.allowPrivate": "true"})

	ctx := t.Context()
	client := api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.CreateEndpoint.Do(ctx, client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	answer, err := api.Submit.Do(ctx, client, api.SubmitRequest{
		To: api.Addresses{{Name: "Jörg", Address: "joerg@example.net"}}, Subject: "Grüße", Text: "Hallo",
	})
	if err != nil {
		t.Fatal(err)
	}
	mails := relay.Wait(1)
	if got := mails[0].To; !slices.Equal(got, []string{"joerg@example.net"}) {
		t.Errorf("the relay got mail for %v", got)
	}
	sent := hooks.wait(t, event.MessageSent)
	if sent.QueueID != answer.QueueID {
		t.Errorf("messageSent is about %q, want %q", sent.QueueID, answer.QueueID)
	}
}

// handIn submits a message. On a busy machine Redis may not answer a submit within its two seconds. Then
// Postroom answers 503, and handIn tries again, with a key, so that there is one message.
func handIn(t *testing.T, client *api.Client, req api.SubmitRequest) (answer api.SubmitAnswer) {
	t.Helper()
	req.IdempotencyKey = cmp.Or(req.IdempotencyKey, rand.Text())
	eventually(t, "the message is accepted", func() bool {
		var err error
		answer, err = api.Submit.Do(t.Context(), client, req)
		f, ok := errors.AsType[*api.Failure](err)
		if busy := ok && f.Problem.StatusCode == http.StatusServiceUnavailable; err != nil && !busy {
			t.Fatal(err)
		}
		return err == nil
	})
	return answer
}

// start runs Postroom with settings, on a free port and with its own data directory, until the test ends.
func start(t *testing.T, set map[string]string) *app.App {
	t.Helper()
	return startLogging(t, set, testLogger(t))
}

// startLogging is start with a given logger.
func startLogging(t *testing.T, set map[string]string, logger *slog.Logger) *app.App {
	t.Helper()
	return startWith(t, set, app.Options{Logger: logger})
}

// startWith is start with options of its own.
func startWith(t *testing.T, set map[string]string, o app.Options) *app.App {
	t.Helper()
	set["http.listen"], set["data"] = "127.0.0.1:0", t.TempDir()
	loaded, err := config.Load(config.Sources{Flags: set})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), &loaded.Config, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Postroom did not stop within a minute")
		}
	})
	return a
}

// receiver keeps the webhooks it gets.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	got  []hook
	more chan struct{}
}

type hook struct {
	Event event.Type    `json:"event"`
	Data  event.Message `json:"data"`
}

func receive(t *testing.T) *receiver {
	r := &receiver{more: make(chan struct{}, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var h hook
		if err != nil || json.Unmarshal(body, &h) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		r.got = append(r.got, h)
		r.mu.Unlock()
		r.more <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

// wait waits for the first webhook of a type.
func (r *receiver) wait(t *testing.T, kind event.Type) event.Message {
	t.Helper()
	late := time.After(patience)
	for {
		r.mu.Lock()
		i := slices.IndexFunc(r.got, func(h hook) bool { return h.Event == kind })
		if i >= 0 {
			defer r.mu.Unlock()
			return r.got[i].Data
		}
		r.mu.Unlock()
		select {
		case <-r.more:
		case <-late:
			t.Fatalf("no %s within %s", kind, patience)
		}
	}
}
