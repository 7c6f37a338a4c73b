package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testkit"
)

// TestStopping: a server that stops finishes submits in progress and refuses new ones, and is not ready.
func TestStopping(t *testing.T) {
	t.Parallel()
	p := newParts(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	p.submit = func(api.SubmitRequest) (api.SubmitAnswer, error) {
		close(entered)
		<-leave
		return api.SubmitAnswer{QueueID: "q1", MessageID: "<1@x>", Response: "Queued for delivery"}, nil
	}
	s, err := New(p.Parts, Options{Listen: "127.0.0.1:0", Drain: 4 * time.Second, Grace: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := api.NewClient(s.URL(), adminToken, &http.Client{Transport: transport})

	underWay := make(chan error, 1)
	go func() {
		_, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
			To: api.Addresses{{Address: "a@example.net"}}})
		underWay <- err
	}()
	<-entered
	cancel()
	for !s.draining.Load() {
		runtime.Gosched()
	}
	_, err = api.Submit.Do(t.Context(), client, api.SubmitRequest{})
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.StatusCode != 503 ||
		f.Problem.Code != "Stopping" || f.RetryAfter == 0 {
		t.Errorf("a submit while stopping: %v", err)
	}
	if ready, err := api.GetReady.Do(t.Context(), client); err != nil || ready.Ready {
		t.Errorf("ready while stopping: %+v, %v", ready, err)
	}
	close(leave)
	if err := <-underWay; err != nil {
		t.Errorf("a submit under way was cut off: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	files := testkit.NewCertificate(t)
	roots := files.Issue(t, "first")
	s, err := New(newParts(t).Parts, Options{Listen: "127.0.0.1:0", TLSCert: files.Cert, TLSKey: files.Key})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for _, h2 := range []bool{false, true, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: h2}
		health, err := api.GetHealth.Do(t.Context(), api.NewClient(s.URL(), "", &http.Client{Transport: transport}))
		if err != nil || !health.Success {
			t.Errorf("http2 %v: %+v, %v", h2, health, err)
		}
		transport.CloseIdleConnections()
		roots = files.Issue(t, "renewed") // the next connection has to show it
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s, err := New(newParts(t).Parts, Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for want, o := range map[string]Options{
		"http.listen": {Listen: s.Addr()},
		"http.tls":    {Listen: "127.0.0.1:0", TLSCert: "missing.pem"},
	} {
		if _, err := New(newParts(t).Parts, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error that names %s, got %v", want, err)
		}
	}
	if _, err := New(Parts{}, Options{}); err == nil {
		t.Error("a server without parts")
	}
}
