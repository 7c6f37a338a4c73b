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
	sender := newSender(t, smtpsend.Options{Admit: func(_ context.Context, relay smtpsend.Relay) (func(), error) {
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
	if e.Verdict != smtpsend.Throttle || e.Scope != smtpsend.ScopeConnection || e.Phase != smtpsend.PhaseConnect || e.RetryAfter != 7*time.Second ||
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

// TestAdmitRefusedWaitsForOurOwn: with one connection open in this process, messages use that rather than fail.
func TestAdmitRefusedWaitsForOurOwn(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Discard: true})
	var held atomic.Int64
	sender := newSender(t, smtpsend.Options{Admit: func(context.Context, smtpsend.Relay) (func(), error) {
		if held.Add(1) > 2 {
			held.Add(-1)
			return nil, full{}
		}
		return func() { held.Add(-1) }, nil
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
				// All connections may have ended at once, each with its last message.
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

// TestAdmitRefusedSetsTheLineFree: when the last connection of this process ends and none may be opened, nobody is left waiting.
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
	eventually(t, "the others are in line", func() bool { return sender.InLine() >= 3 }) // one may have been taken along with the dot
	close(release)
	for range 5 {
		if e := failure(t, <-errs); e.Code != 421 && e.Verdict != smtpsend.Throttle {
			t.Error(e)
		}
	}
}

func TestAnswered(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{MaxRecipients: 2})
	sender := newSender(t, smtpsend.Options{})
	for _, row := range []struct {
		name   string
		fails  int // the call that says no; 0: none
		told   [][]string
		result []string
	}{
		{"said yes to", 0, [][]string{
			{"a@example.org +", "rcpt-550@example.org -"},
			{"a@example.org +", "rcpt-550@example.org -", "b@example.org +", "c@example.org +"},
		}, []string{"a@example.org +", "rcpt-550@example.org -", "b@example.org +", "c@example.org +", "d@example.org +"}},
		{"said no to", 1, [][]string{
			{"a@example.org +", "rcpt-550@example.org -"},
		}, []string{"a@example.org +", "rcpt-550@example.org -", "b@example.org -", "c@example.org -", "d@example.org -"}},
	} {
		relay := relayTo(server)
		relay.RecipientsPerTransaction = 2
		m := mail("a@example.org", "rcpt-550@example.org", "b@example.org", "c@example.org", "d@example.org")
		var told [][]string
		m.Answered = func(_ context.Context, done []smtpsend.RecipientResult) error {
			told = append(told, signs(done))
			if len(told) == row.fails {
				return errors.New("the journal is away")
			}
			return nil
		}
		result, err := sender.Send(t.Context(), relay, m)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(row.told, told); diff != "" {
			t.Errorf("%s: told %s", row.name, diff)
		}
		if diff := cmp.Diff(row.result, signs(result.Recipients)); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
		last := result.Recipients[4].Err
		if row.fails > 0 && (last == nil || last.Permanent() || last.InDoubt || last.Elsewhere()) {
			t.Errorf("%s: those left: %+v", row.name, last)
		}
	}
}

// signs writes who was delivered to (+) and who was not (-).
func signs(results []smtpsend.RecipientResult) []string {
	out := make([]string, len(results))
	for i, r := range results {
		out[i] = r.Address + " +"
		if r.Err != nil {
			out[i] = r.Address + " -"
		}
	}
	return out
}

func TestElsewhere(t *testing.T) {
	for _, row := range []struct {
		name string
		err  smtpsend.Error
		want bool
	}{
		{"name not found", smtpsend.Error{Phase: smtpsend.PhaseDNS, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeAccount}, true},
		{"not reached", smtpsend.Error{Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeAccount}, true},
		{"certificate", smtpsend.Error{Phase: smtpsend.PhaseTLS, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount}, true},
		{"TLS that only the message wants", smtpsend.Error{Phase: smtpsend.PhaseSTARTTLS, Verdict: smtpsend.Policy, Scope: smtpsend.ScopeMessage}, false},
		{"listed", smtpsend.Error{Phase: smtpsend.PhaseGreeting, Verdict: smtpsend.Block, Scope: smtpsend.ScopeDestination}, true},
		{"our name", smtpsend.Error{Phase: smtpsend.PhaseEHLO, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount}, true},
		{"login", smtpsend.Error{Phase: smtpsend.PhaseAuth, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount}, true},
		{"too many logins", smtpsend.Error{Phase: smtpsend.PhaseAuth, Verdict: smtpsend.Throttle, Scope: smtpsend.ScopeAccount}, true},
		{"settings", smtpsend.Error{Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount}, true},
		{"quota at MAIL", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Throttle, Scope: smtpsend.ScopeAccount}, true},
		{"shutting down at MAIL", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeConnection}, true},
		{"login wanted at MAIL", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount}, true},
		{"sender refused", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Policy, Scope: smtpsend.ScopeMessage}, false},
		{"message refused for now at MAIL", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeMessage}, false},
		{"invalid address", smtpsend.Error{Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Policy, Scope: smtpsend.ScopeMessage}, false},
		{"quota at RCPT", smtpsend.Error{Phase: smtpsend.PhaseRcpt, Verdict: smtpsend.Throttle, Scope: smtpsend.ScopeAccount}, false},
		{"connection lost at RCPT", smtpsend.Error{Phase: smtpsend.PhaseRcpt, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeConnection}, false},
		{"connection lost at the dot", smtpsend.Error{Phase: smtpsend.PhaseDot, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeConnection, InDoubt: true}, false},
	} {
		if got := row.err.Elsewhere(); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestRequireTLS(t *testing.T) {
	offer := []string{"REQUIRETLS"}
	for _, row := range []struct {
		name   string
		server testsmtp.Options
		relay  smtpsend.Relay
		trust  bool
		ok     bool
	}{
		{"offered, verified", testsmtp.Options{Security: testsmtp.STARTTLS, Extensions: offer}, smtpsend.Relay{TLS: smtpsend.TLSRequired}, true, true},
		{"offered, TLS only liked, and yet verified", testsmtp.Options{Security: testsmtp.STARTTLS, Extensions: offer}, smtpsend.Relay{}, true, true},
		{"offered, TLS only liked, certificate unknown", testsmtp.Options{Security: testsmtp.STARTTLS, Extensions: offer}, smtpsend.Relay{}, false, false},
		{"offered, certificate not looked at", testsmtp.Options{Security: testsmtp.STARTTLS, Extensions: offer}, smtpsend.Relay{TLS: smtpsend.TLSRequired, InsecureSkipVerify: true}, true, false},
		{"offered in clear", testsmtp.Options{Extensions: offer}, smtpsend.Relay{}, true, false},
		{"not offered", testsmtp.Options{Security: testsmtp.STARTTLS}, smtpsend.Relay{TLS: smtpsend.TLSRequired}, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.server.Record = true
			server := testsmtp.Start(t, row.server)
			row.relay.Host, row.relay.Port = server.Host(), server.Port()
			if row.trust {
				row.relay.CA = server.CA()
			}
			sender := newSender(t, smtpsend.Options{Timeout: 15 * time.Second})
			m := mail("b@example.org")
			m.RequireTLS = true
			_, err := sender.Send(t.Context(), row.relay, m)
			if row.ok {
				if err != nil {
					t.Fatal(err)
				}
				if got := server.Commands()[3]; got != "MAIL FROM:<a@example.com> REQUIRETLS" {
					t.Error(got)
				}
				return
			}
			if e := failure(t, err); e.Verdict != smtpsend.Policy || e.Scope != smtpsend.ScopeMessage || e.Elsewhere() || server.Count() != 0 {
				t.Errorf("%s %s: %v", e.Verdict, e.Scope, e)
			}
			m.RequireTLS = false
			if _, err := sender.Send(t.Context(), row.relay, m); err != nil {
				t.Errorf("other messages suffer: %v", err)
			}
		})
	}
}

func TestOriginalRecipient(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Extensions: []string{"DSN"}, Record: true, NoPipelining: true})
	sender := newSender(t, smtpsend.Options{})
	m := mail("a+b=c@example.org", `"x\y"@example.org`, "bü+c@bücher.example", "d@bücher.example")
	m.DSN.Envelope = "id"
	if _, err := sender.Send(t.Context(), relayTo(server), m); err != nil {
		t.Fatal(err)
	}
	m = mail("e@example.org")
	if _, err := sender.Send(t.Context(), relayTo(server), m); err != nil {
		t.Fatal(err)
	}
	m = mail("f@example.org")
	m.DSN.Original = "old+f@example.org"
	if _, err := sender.Send(t.Context(), relayTo(server), m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range server.Commands() {
		if c[:4] == "RCPT" {
			got = append(got, c)
		}
	}
	if diff := cmp.Diff([]string{
		"RCPT TO:<a+b=c@example.org> ORCPT=rfc822;a+2Bb+3Dc@example.org",
		`RCPT TO:<"x\y"@example.org> ORCPT=rfc822;"x\y"@example.org`,
		`RCPT TO:<bü+c@xn--bcher-kva.example> ORCPT=utf-8;bü\x{2B}c@xn--bcher-kva.example`,
		"RCPT TO:<d@xn--bcher-kva.example> ORCPT=rfc822;d@xn--bcher-kva.example",
		"RCPT TO:<e@example.org>",
		"RCPT TO:<f@example.org> ORCPT=rfc822;old+2Bf@example.org",
	}, got); diff != "" {
		t.Error(diff)
	}
}
