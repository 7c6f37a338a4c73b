package smtpsend_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// full is what counts connections across processes says when there is no room.
type full struct{}

func (full) Error() string             { return "5 connections are open everywhere" }
func (full) RetryAfter() time.Duration { return 7 * time.Second }

func TestAdmit(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{})
	var room, held atomic.Int64
	var asked []string
	var mu sync.Mutex
	sender := newSender(t, smtpsend.Options{Admit: func(_ context.Context, relay smtpsend.Relay) (func(),
		error) {
		mu.Lock()
		asked = append(asked, relay.Shared)
		mu.Unlock()
		if held.Add(1) > room.Load() {
			held.Add(-1)
			return nil, full{}
		}
		return func() { held.Add(-1) }, nil
	}})
	relay := relayTo(server)
	if _, err := sender.Send(t.Context(), relay, mail("b@example.org")); err != nil || len(asked) != 0 {
		t.Errorf("without a scope to share: %v, asked %q", err, asked)
	}
	relay.Shared = "gateway:g"
	_, err := sender.Send(t.Context(), relay, mail("b@example.org"))
	e := failure(t, err)
	if e.Verdict != smtpsend.Throttle || e.Scope != smtpsend.ScopeConnection ||
		e.Phase != smtpsend.PhaseConnect || e.RetryAfter != 7*time.Second ||
		!e.Elsewhere() || !errors.Is(err, full{}) {
		t.Errorf("%+v", e)
	}
	room.Store(1)
	if _, err := sender.Send(t.Context(), relay, mail("b@example.org")); err != nil {
		t.Error(err)
	}
	if held.Load() != 1 {
		t.Errorf("%d connections are counted while one is idle", held.Load())
	}
	server.CutAll()
	if _, err := sender.Send(t.Context(), relay, mail("b@example.org")); err != nil {
		t.Errorf("the place of a dead connection was not free again: %v", err)
	}
	_ = sender.Close()
	if held.Load() != 0 {
		t.Errorf("%d connections are counted after all were closed", held.Load())
	}
	if diff := cmp.Diff([]string{"gateway:g", "gateway:g", "gateway:g"}, asked); diff != "" {
		t.Error(diff)
	}
}

// TestAdmitRefusedWaitsForOurOwn: with one connection open in this process, messages use that rather than
// fail.
func TestAdmitRefusedWaitsForOurOwn(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Discard: true})
	var held atomic.Int64
	sender := newSender(t, smtpsend.Options{Admit: func(context.Context, smtpsend.Relay) (func(), error) {
		for n := held.Load(); n < 2; n = held.Load() {
			if held.CompareAndSwap(n, n+1) {
				return func() { held.Add(-1) }, nil
			}
		}
		return nil, full{}
	}})
	relay := relayTo(server)
	relay.Shared, relay.MessagesPerConnection = "gateway:g", 7
	if _, err := sender.Send(t.Context(), relay, mail("b@example.org")); err != nil {
		t.Fatal(err)
	}
	var failed atomic.Int64
	var group sync.WaitGroup
	const messages = 100
	for range messages {
		group.Go(func() {
			if _, err := sender.Send(t.Context(), relay, mail("b@example.org")); err != nil {
				// All connections may have ended together, each with its last message.
				if e := failure(t, err); e.Verdict != smtpsend.Throttle {
					t.Error(e)
				}
				failed.Add(1)
			}
		})
	}
	group.Wait()
	if n := failed.Load(); n > messages/2 {
		t.Errorf("%d of %d messages did not wait for a connection", n, messages)
	}
	if sender.InLine() != 0 || sender.InUse() != 0 {
		t.Errorf("%d messages are left in line and %d connections in use", sender.InLine(), sender.InUse())
	}
	_ = sender.Close()
	if held.Load() != 0 {
		t.Errorf("%d connections are counted after all were closed", held.Load())
	}
}

// TestAdmitRefusedSetsTheLineFree: when the last connection of this process ends and none may be opened,
// nobody is left waiting.
func TestAdmitRefusedSetsTheLineFree(t *testing.T) {
	release := make(chan struct{})
	server := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "DOT" {
			<-release
			return testsmtp.Action{Reply: "421 4.3.2 Shutting down", Close: true}
		}
		return testsmtp.Action{}
	}})
	var admitted atomic.Bool
	sender := newSender(t, smtpsend.Options{Admit: func(context.Context, smtpsend.Relay) (func(), error) {
		if admitted.Swap(true) {
			return nil, full{}
		}
		return func() {}, nil
	}})
	relay := relayTo(server)
	relay.Shared, relay.Connections = "gateway:g", 1
	errs := make(chan error, 5)
	send := func() {
		_, err := sender.Send(t.Context(), relay, mail("b@example.org"))
		errs <- err
	}
	go send()
	eventually(t, "the first has its connection", admitted.Load)
	for range 4 {
		go send()
	}
	// one may have left together with the dot
	eventually(t, "the others are in line", func() bool { return sender.InLine() >= 3 })
	close(release)
	for range 5 {
		if e := failure(t, <-errs); e.Code != 421 && e.Verdict != smtpsend.Throttle {
			t.Error(e)
		}
	}
}
