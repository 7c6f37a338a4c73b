package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/bench/rig"
)

// receiver is a webhook endpoint. An event that it has read to its end counts as received, whatever the
// response.
type receiver struct {
	name   string
	id     string // the endpoint's
	ledger *ledger
	server *httptest.Server
	mood   atomic.Int32
	calm   atomic.Bool
	forged atomic.Int64 // requests whose signature does not fit

	mu   sync.Mutex
	key  []byte // the endpoint's; nil until it is known
	dice *rand.Rand
}

func newReceiver(name string, seed uint64, l *ledger) *receiver {
	r := &receiver{name: name, ledger: l, dice: random(seed, name)}
	r.server = httptest.NewServer(r)
	return r
}

// trust sets the secret that requests must be signed with.
func (r *receiver) trust(secret string) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return fmt.Errorf("secret of endpoint %s: %w", r.name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.key = key
	return nil
}

func (r *receiver) close() {
	r.server.CloseClientConnections()
	r.server.Close()
}

// ServeHTTP takes an event.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // broken off on its way
	}
	var e struct {
		EventID string `json:"eventId"`
	}
	if !r.signed(req.Header, body) || json.Unmarshal(body, &e) != nil || e.EventID == "" ||
		e.EventID != req.Header.Get("X-EE-Wh-Event-Id") {
		r.forged.Add(1)
		return
	}
	r.ledger.got(r.name, e.EventID)
	r.answer(req.Context(), w)
}

// signed checks the signature of Standard Webhooks.
func (r *receiver) signed(h http.Header, body []byte) bool {
	r.mu.Lock()
	key := r.key
	r.mu.Unlock()
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"))
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return hmac.Equal([]byte(h.Get("Webhook-Signature")), []byte(want))
}

// answer responds, or fails as a faulty receiver does.
func (r *receiver) answer(ctx context.Context, w http.ResponseWriter) {
	if r.calm.Load() {
		return // 200
	}
	r.mu.Lock()
	n := r.dice.IntN(1000)
	r.mu.Unlock()
	switch m := mood(r.mood.Load()); {
	case m == silent || n < 5:
		_ = rig.Wait(ctx, time.Minute) // the sender times out earlier
		panic(http.ErrAbortHandler)
	case m == refusing || n < 60:
		http.Error(w, "not today", http.StatusInternalServerError)
	case m == dropping || n < 90:
		panic(http.ErrAbortHandler) // breaks the connection
	case n < 110:
		http.Error(w, "busy", http.StatusServiceUnavailable)
	}
}
