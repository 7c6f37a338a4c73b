package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/postroom/postroom/api/event"
)

// hook is a received webhook with a verified signature.
type hook struct {
	Event event.Type `json:"event"`
	Data  struct {
		event.Message
		event.Failure
		Response string    `json:"response"`
		Reason   string    `json:"reason"`
		Job      event.Job `json:"job"`
	} `json:"data"`
}

// receiver takes webhooks, as a user's program would. It verifies their signatures with the Standard Webhooks
// library, which is independent of Postroom.
type receiver struct {
	secret   string
	verifier *standardwebhooks.Webhook
	server   *http.Server
	address  string
	news     chan<- happening
	closed   chan struct{}
	served   sync.WaitGroup
}

// openReceiver starts a receiver on a free local port.
func openReceiver(secret string, news chan<- happening) (*receiver, error) {
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return nil, fmt.Errorf("start the webhook receiver: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the webhook receiver: %w", err)
	}
	r := &receiver{secret: secret, verifier: verifier, address: l.Addr().String(), news: news,
		closed: make(chan struct{})}
	r.server = &http.Server{Handler: http.HandlerFunc(r.receive), ReadTimeout: 30 * time.Second}
	r.served.Go(func() { _ = r.server.Serve(l) })
	return r, nil
}

func (r *receiver) url() string { return "http://" + r.address + "/hooks" }

// close closes all connections.
func (r *receiver) close() {
	close(r.closed)
	_ = r.server.Close()
	r.served.Wait()
}

// receive takes one webhook. It refuses a wrong signature, as the sender may be anybody.
func (r *receiver) receive(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	if err := r.verifier.Verify(body, req.Header); err != nil {
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
		return
	}
	var h hook
	if err := json.Unmarshal(body, &h); err != nil {
		http.Error(w, "the body is not an event", http.StatusBadRequest)
		return
	}
	select {
	case r.news <- happening{hook: &h}:
		w.WriteHeader(http.StatusNoContent)
	case <-r.closed:
		w.WriteHeader(http.StatusServiceUnavailable)
	case <-req.Context().Done():
	}
}
