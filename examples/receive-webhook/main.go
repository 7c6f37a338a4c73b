// Command receive-webhook takes Postroom's webhooks: it checks that they come from Postroom, and acts on each
// event once, however often it arrives.
//
//	POSTROOM_WEBHOOK_SECRET=whsec_… go run ./examples/receive-webhook 127.0.0.1:8080
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tolerance is how old, or how far in the future, a request may be: a recorded one can't be played back
// later.
const tolerance = 5 * time.Minute

// remembered is how long an event's id is kept: longer than the log of deliveries, from which an operator may
// send one again.
const remembered = 8 * 24 * time.Hour

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("POSTROOM_WEBHOOK_SECRET"),
		"whsec_"))
	if err != nil || len(key) == 0 || len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: POSTROOM_WEBHOOK_SECRET=whsec_… receive-webhook HOST:PORT")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server := &http.Server{Addr: os.Args[1], Handler: newReceiver(key, show),
		ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	log.Print(server.ListenAndServe())
}

// event is as much of the body as this program needs.
type event struct {
	Type string `json:"event"`
	Data struct {
		QueueID  string          `json:"queueId"`
		Metadata json.RawMessage `json:"metadata"`
		Envelope struct {
			To []string `json:"to"`
		} `json:"envelope"`
	} `json:"data"`
}

// show is where a program of yours would mark its order as confirmed.
func show(e event) error {
	log.Printf("%s: message %s to %v, about %s", e.Type, e.Data.QueueID, e.Data.Envelope.To, e.Data.Metadata)
	return nil
}

// receiver remembers which events it has handled. It does so in memory; a program with a database keeps the
// id there, in the transaction that does the work, and then survives a restart as well.
type receiver struct {
	key    []byte
	handle func(event) error

	mu   sync.Mutex
	seen map[string]time.Time // by webhook-id; zero while it is being handled
}

func newReceiver(key []byte, handle func(event) error) *receiver {
	return &receiver{key: key, handle: handle, seen: map[string]time.Time{}}
}

// ServeHTTP answers 2xx only when the event is dealt with: anything else makes Postroom send it again.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if !verify(r.key, req.Header, body, time.Now()) {
		http.Error(w, "bad signature", http.StatusUnauthorized)
		return
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	id := req.Header.Get("Webhook-Id")
	claimed, done := r.claim(id)
	switch {
	case done:
		w.WriteHeader(http.StatusNoContent)
	case !claimed:
		http.Error(w, "being handled", http.StatusServiceUnavailable)
	default:
		err := r.handle(e)
		r.settle(id, err == nil)
		if err != nil {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// verify says whether a request comes from Postroom and is not older than five minutes.
func verify(key []byte, h http.Header, body []byte, now time.Time) bool {
	id, at := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	sent, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(sent, 0)).Abs() > tolerance {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, at)
	mac.Write(body)
	want := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for signature := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
		if hmac.Equal([]byte(signature), want) {
			return true
		}
	}
	return false
}

// claim takes an event on, unless it was handled before or is being handled now. It forgets ids that nobody
// will send again.
func (r *receiver) claim(id string) (claimed, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, at := range r.seen {
		if !at.IsZero() && time.Since(at) > remembered {
			delete(r.seen, other)
		}
	}
	at, known := r.seen[id]
	if known {
		return false, !at.IsZero()
	}
	r.seen[id] = time.Time{}
	return true, false
}

func (r *receiver) settle(id string, handled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if handled {
		r.seen[id] = time.Now()
	} else {
		delete(r.seen, id)
	}
}
