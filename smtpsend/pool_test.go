package smtpsend_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

func TestPoolKeepsToItsLimits(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Discard: true})
	sender := newSender(t, smtpsend.Options{})
	relay := relayTo(server)
	relay.Connections, relay.MessagesPerConnection = 3, 10
	var most int
	var mu sync.Mutex
	var group sync.WaitGroup
	const messages = 120
	for range messages {
		group.Go(func() {
			m := mail("b@example.org")
			m.BeforeDot = func(context.Context, []string) error {
				mu.Lock()
				defer mu.Unlock()
				most = max(most, server.Open())
				return nil
			}
			if _, err := sender.Send(t.Context(), relay, m); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if server.Count() != messages {
		t.Errorf("%d messages arrived", server.Count())
	}
	// The server counts a connection until it has noticed the end of it, so a closing one may overlap with its
	// successor.
	if most > 2*relay.Connections {
		t.Errorf("%d connections at once", most)
	}
	if n := server.Connections(); n < messages/10 || n > messages/10+relay.Connections {
		t.Errorf("%d connections for %d messages of 10 each", n, messages)
	}
}

func TestWaitingForAConnectionObeysTheContext(t *testing.T) {
	release, reached := make(chan struct{}), make(chan struct{})
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{})
	relay := relayTo(server)
	relay.Connections = 1
	first := make(chan error)
	go func() {
		m := mail("b@example.org")
		m.BeforeDot = func(context.Context, []string) error { close(reached); <-release; return nil }
		_, err := sender.Send(t.Context(), relay, m)
		first <- err
	}()
	<-reached
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := sender.Send(ctx, relay, mail("c@example.org"))
	if e := failure(t, err); e.Name() != "ETIMEDOUT" || e.Phase != smtpsend.PhaseConnect ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s at %s: %v", e.Name(), e.Phase, e)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if _, err := sender.Send(t.Context(), relay, mail("d@example.org")); err != nil {
		t.Errorf("the connection is lost to the pool: %v", err)
	}
	if server.Connections() != 1 {
		t.Errorf("%d connections", server.Connections())
	}
}

// TestRelayRestart: every pooled connection is dead, and no message may notice.
func TestRelayRestart(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{})
	for round := range 3 {
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if _, err := sender.Send(t.Context(), relayTo(server), mail("b@example.org")); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if server.Count() != 20*(round+1) {
			t.Errorf("round %d: %d messages", round, server.Count())
		}
		server.CutAll()
	}
}

func TestOtherCredentialsAnotherConnection(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Username: "u", Password: "p", Security: testsmtp.STARTTLS})
	sender := newSender(t, smtpsend.Options{})
	relay := relayTo(server)
	relay.Username, relay.Password = "u", "p"
	if _, err := sender.Send(t.Context(), relay, mail("b@example.org")); err != nil {
		t.Fatal(err)
	}
	relay.Password = "changed"
	if _, err := sender.Send(t.Context(), relay, mail("b@example.org")); failure(t, err).Name() != "EAUTH" {
		t.Errorf("the old login was used: %v", err)
	}
}

func TestIdleConnectionsAreReaped(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{IdleTimeout: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- sender.Run(ctx) }()
	if _, err := sender.Send(t.Context(), relayTo(server), mail("b@example.org")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the idle connection is closed", func() bool { return server.Open() == 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestCloseRefusesNewMessages(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{})
	if _, err := sender.Send(t.Context(), relayTo(server), mail("b@example.org")); err != nil {
		t.Fatal(err)
	}
	_ = sender.Close()
	eventually(t, "the idle connection is closed", func() bool { return server.Open() == 0 })
	if _, err := sender.Send(t.Context(), relayTo(server), mail("b@example.org")); failure(t, err).Permanent() {
		t.Errorf("closing loses mail: %v", err)
	}
}

func TestARelaysOwnTimes(t *testing.T) {
	for _, row := range []struct {
		name        string
		relay       smtpsend.Relay
		options     smtpsend.Options
		connections int
	}{
		{"the usual ones", smtpsend.Relay{}, smtpsend.Options{}, 1},
		{"idle time over", smtpsend.Relay{IdleTimeout: 1}, smtpsend.Options{}, 3},
		{"lifetime over", smtpsend.Relay{Lifetime: 1}, smtpsend.Options{}, 3},
		{"longer than the usual ones", smtpsend.Relay{IdleTimeout: time.Hour, Lifetime: time.Hour},
			smtpsend.Options{IdleTimeout: 1, Lifetime: 1}, 1},
	} {
		server := testsmtp.Start(t, testsmtp.Options{})
		sender := newSender(t, row.options)
		row.relay.Host, row.relay.Port = server.Host(), server.Port()
		for range 3 {
			if _, err := sender.Send(t.Context(), row.relay, mail("b@example.org")); err != nil {
				t.Fatal(err)
			}
		}
		if server.Connections() != row.connections {
			t.Errorf("%s: %d connections, want %d", row.name, server.Connections(), row.connections)
		}
	}
}
