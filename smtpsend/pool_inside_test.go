package smtpsend

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
)

// TestHandBack is a turn that comes in the same moment as its message gives up.
func TestHandBack(t *testing.T) {
	sender, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	relay := sender.complete(Relay{Host: "mx.test"})
	for _, row := range []struct {
		name       string
		connection bool // there is one
		begun      bool // with an envelope on its way
		inLine     bool // somebody else waits
		open, idle int  // afterwards
		gets       string
	}{
		{name: "the right to open one", open: 0},
		{name: "the right to open one, wanted", inLine: true, open: 1, gets: "right"},
		{name: "a connection", connection: true, open: 1, idle: 1},
		{name: "a connection, wanted", connection: true, inLine: true, open: 1, gets: "connection"},
		{name: "a connection with an envelope on it", connection: true, begun: true, open: 0},
		{name: "a connection with an envelope on it, wanted", connection: true, begun: true, inLine: true, open: 1,
			gets: "right"},
	} {
		p := newPool()
		k := &connections{open: 1}
		p.relays[relay] = k
		d := newDelivery(sender, relay, Message{To: []string{"b@example.org"}})
		var next *waiter
		if row.inLine {
			next = k.join(d)
		}
		var g grant
		if row.connection {
			g.c = &session{sender: sender, relay: relay, raw: &scripted{}, expires: time.Now().Add(time.Hour)}
		}
		if row.begun {
			g.t = newTransaction(d, g.c)
		}
		p.handBack(relay, g)
		if k.open != row.open || len(k.idle) != row.idle || len(k.line) != 0 {
			t.Errorf("%s: %d open, %d idle, %d in line", row.name, k.open, len(k.idle), len(k.line))
		}
		got := ""
		if next != nil {
			got = "right"
			if (<-next.turn).c != nil {
				got = "connection"
			}
		}
		if got != row.gets {
			t.Errorf("%s: the next gets %q, want %q", row.name, got, row.gets)
		}
	}
}

// TestIdleForAWhile: a connection that was idle for some seconds is asked whether it is still there, before a
// message is entrusted to it.
func TestIdleForAWhile(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Record: true})
	sender, err := New(Options{IdleTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	relay := sender.complete(Relay{Host: server.Host(), Port: server.Port()})
	send := func() Result {
		t.Helper()
		result, err := sender.Send(context.Background(), relay, Message{To: []string{"b@example.org"},
			Body: Bytes("x")})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	age := func() {
		for _, c := range sender.pool.relays[relay].idle {
			c.idleSince = c.idleSince.Add(-6 * time.Second)
		}
	}
	send()
	age()
	if !send().Reused || !strings.Contains(strings.Join(server.Commands(), "\n"), "NOOP\nMAIL") {
		t.Errorf("commands: %q", server.Commands())
	}
	age()
	server.CutAll()
	if send().Reused || server.Count() != 3 || server.Connections() != 2 {
		t.Errorf("%d messages over %d connections", server.Count(), server.Connections())
	}
}

// A recorder is used for each message, also for those that are delivered: a dialogue of usual length takes no
// memory.
func TestRecordingAllocatesNothing(t *testing.T) {
	r := new(recorder)
	if n := testing.AllocsPerRun(100, func() { record(r) }); n != 0 {
		t.Errorf("%.0f allocations", n)
	}
}

func BenchmarkRecorder(b *testing.B) {
	b.ReportAllocs()
	r := new(recorder)
	for b.Loop() {
		record(r)
	}
}

// record records a message over a connection that was used before.
func record(r *recorder) {
	r.begin()
	r.note("a connection")
	r.said("MAIL FROM:<a@example.com>")
	r.said("RCPT TO:<", "b@example.org", ">", "")
	r.said("DATA")
	for range 3 {
		r.heard(reply{250, "2.1.0 ok"})
	}
	r.content(4000)
	r.said(".")
	r.heard(reply{250, "2.0.0 queued"})
	r.reset()
}
