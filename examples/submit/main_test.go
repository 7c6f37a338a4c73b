package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
)

// TestAnswerLostOnTheWay loses the first answer: the message was accepted, and the caller does not know.
func TestAnswerLostOnTheWay(t *testing.T) {
	p := apptest.Start(t, nil)
	address, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.ModifyResponse = func(*http.Response) error {
		if calls.Add(1) == 1 {
			return errors.New("lost")
		}
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)

	answer, err := confirmOrder(t.Context(), api.NewClient(front.URL, p.Token, nil), "ann@example.net", "12345")
	if err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 2 || answer.Idempotency.Status != "HIT" {
		t.Errorf("answered %+v after %d calls, want HIT after 2", answer.Idempotency, calls.Load())
	}
	p.Relay.Wait(1)
	if again, err := confirmOrder(t.Context(), p.Client, "ann@example.net", "12345"); err != nil ||
		again.QueueID != answer.QueueID {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if n := p.Relay.Count(); n != 1 {
		t.Errorf("the relay got %d mails, want 1", n)
	}
}

// TestRefusalIsFinal does not repeat what can't succeed.
func TestRefusalIsFinal(t *testing.T) {
	p := apptest.Start(t, nil)
	_, err := confirmOrder(t.Context(), p.Client, "not an address", "1")
	if refusal, ok := errors.AsType[*api.Failure](err); !ok ||
		refusal.Problem.StatusCode != http.StatusBadRequest {
		t.Errorf("got %v, want 400", err)
	}
}
