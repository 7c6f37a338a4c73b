package smtpsend_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// TestBulkMailLeavesConnections: while bulk mail waits for its connections, other mail has one immediately.
func TestBulkMailLeavesConnections(t *testing.T) {
	release := make(chan struct{})
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{})
	relay := relayTo(server)
	relay.Connections = 5
	ended := make(chan error, 10)
	for range 10 {
		go func() {
			m := mail("bulk@example.org")
			m.Bulk = true
			m.BeforeDot = func(context.Context, []string) error { <-release; return nil }
			_, err := sender.Send(t.Context(), relay, m)
			ended <- err
		}()
	}
	eventually(t, "bulk mail has its connections", func() bool { return server.Open() == 4 })
	if _, err := sender.Send(t.Context(), relay, mail("receipt@example.org")); err != nil {
		t.Error(err)
	}
	if n := server.Count(); n != 1 {
		t.Errorf("%d messages arrived before the bulk mail was released", n)
	}
	close(release)
	for range 10 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := server.Connections(); n > 5 {
		t.Errorf("%d connections", n)
	}
}

// TestPatience: a message that finds no connection in time fails so that it may go elsewhere, and the line
// continues without it.
func TestPatience(t *testing.T) {
	release := make(chan struct{})
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{})
	relay := relayTo(server)
	relay.Connections = 1
	first := make(chan error, 1)
	go func() {
		m := mail("first@example.org")
		m.BeforeDot = func(context.Context, []string) error { <-release; return nil }
		_, err := sender.Send(t.Context(), relay, m)
		first <- err
	}()
	eventually(t, "the first is under way", func() bool { return server.Open() == 1 })
	m := mail("second@example.org")
	m.Patience = time.Millisecond
	_, err := sender.Send(t.Context(), relay, m)
	e, ok := errors.AsType[*smtpsend.Error](err)
	if !ok || e.Verdict != smtpsend.Throttle || e.Phase != smtpsend.PhaseConnect || !e.Elsewhere() {
		t.Errorf("%v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if _, err := sender.Send(t.Context(), relay, m); err != nil {
		t.Errorf("the connection is lost: %v", err)
	}
}
