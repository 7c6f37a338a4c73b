package smtpsend_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

func newSender(t *testing.T, o smtpsend.Options) *smtpsend.Sender {
	t.Helper()
	s, err := smtpsend.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func relayTo(s *testsmtp.Server) smtpsend.Relay {
	return smtpsend.Relay{ID: "test", Host: s.Host(), Port: s.Port(), CA: s.CA()}
}

func mail(to ...string) smtpsend.Message {
	return smtpsend.Message{From: "a@example.com", To: to, Data: []byte("Subject: hello\r\n\r\nworld\r\n")}
}

// failure is err as the *Error it must be.
func failure(t *testing.T, err error) *smtpsend.Error {
	t.Helper()
	var e *smtpsend.Error
	if !errors.As(err, &e) {
		t.Fatalf("want an *Error, got %v", err)
	}
	return e
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestSendDelivers(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{})
	result, err := sender.Send(t.Context(), relayTo(server), mail("b@example.org", "c@example.org"))
	if err != nil {
		t.Fatal(err)
	}
	got := server.Wait(1)[0]
	if diff := cmp.Diff([]string{"b@example.org", "c@example.org"}, got.To); diff != "" || got.From != "a@example.com" {
		t.Errorf("envelope: from %s, to %s", got.From, diff)
	}
	if diff := cmp.Diff("Subject: hello\r\n\r\nworld\r\n", string(got.Data)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b@example.org", "c@example.org"}, result.Delivered()); diff != "" {
		t.Error(diff)
	}
	if result.Code != 250 || result.RemoteName != "testsmtp" || result.RemoteAddress != server.Addr() || result.TLS != "" || result.Reused {
		t.Errorf("result: %+v", result)
	}
	if result.Timings.Connect == 0 || result.Timings.Data == 0 || result.Timings.Dot == 0 {
		t.Errorf("timings: %+v", result.Timings)
	}
}

// TestFaultsAtEachPhase counts that a failure before the dot never delivers and is never in doubt, and that one after it is.
func TestFaultsAtEachPhase(t *testing.T) {
	type fault struct {
		name string
		testsmtp.Action
	}
	faults := []fault{
		{"closes", testsmtp.Action{Close: true}},
		{"resets", testsmtp.Action{Reset: true}},
		{"hangs", testsmtp.Action{Hang: true}},
		{"421", testsmtp.Action{Reply: "421 4.3.2 Shutting down", Close: true}},
		{"garbage", testsmtp.Action{Reply: "lorem ipsum"}},
		{"mixed codes", testsmtp.Action{Reply: "250-a\n550 b"}},
	}
	for _, pipelining := range []bool{true, false} {
		for _, verb := range []string{"CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "DOT"} {
			for _, f := range faults {
				t.Run(fmt.Sprintf("%s/%s/pipelining=%v", verb, f.name, pipelining), func(t *testing.T) {
					t.Parallel()
					f.Store = verb == "DOT"
					server := testsmtp.Start(t, testsmtp.Options{NoPipelining: !pipelining, Respond: func(c testsmtp.Command) testsmtp.Action {
						if c.Verb == verb {
							return f.Action
						}
						return testsmtp.Action{}
					}})
					patience := 10 * time.Second
					if f.Hang {
						patience = 300 * time.Millisecond
					}
					sender := newSender(t, smtpsend.Options{Timeout: patience})
					result, err := sender.Send(t.Context(), relayTo(server), mail("b@example.org"))
					e := failure(t, err)
					answered := f.name == "421"
					if want := verb == "DOT" && !answered; e.InDoubt != want {
						t.Errorf("in doubt: %v, want %v: %v", e.InDoubt, want, e)
					}
					if e.Permanent() || e.Suppress {
						t.Errorf("%s/%s is no reason to give up: %v", e.Verdict, e.Scope, e)
					}
					if answered != (e.Code == 421) {
						t.Errorf("code %d", e.Code)
					}
					if len(result.Recipients) != 1 || result.Recipients[0].Err == nil {
						t.Errorf("recipients: %+v", result.Recipients)
					}
					if verb != "DOT" && server.Count() != 0 {
						t.Error("delivered all the same")
					}
					if server.Connections() != 1 {
						t.Errorf("%d connections: a failure on a fresh connection is not for us to retry", server.Connections())
					}
				})
			}
		}
	}
}

// TestPrematureReply: a relay that gives up in the middle of the content says why before it closes. Losing that text would make a
// quota or a size limit look like a broken line.
func TestPrematureReply(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		say := func(s string) { _, _ = conn.Write([]byte(s)) }
		buf := make([]byte, 64<<10)
		say("220 mx\r\n")
		_, _ = conn.Read(buf)
		say("250-mx\r\n250 PIPELINING\r\n")
		_, _ = conn.Read(buf)
		say("250 ok\r\n250 ok\r\n354 go\r\n")
		_, _ = conn.Read(buf)
		say("552 5.3.4 Message too big\r\n")
		_ = conn.(*net.TCPConn).CloseRead()
		_, _ = conn.Read(buf)
	}()
	addr := listener.Addr().(*net.TCPAddr)
	m := mail("b@example.org")
	m.Data = append(m.Data, bytes.Repeat([]byte("0123456789\r\n"), 2<<20)...)
	m.BeforeDot = func(context.Context, []string) error { t.Error("the dot was near"); return nil }
	_, err = newSender(t, smtpsend.Options{Timeout: 3 * time.Second}).Send(t.Context(), smtpsend.Relay{Host: "127.0.0.1", Port: addr.Port}, m)
	_ = listener.Close()
	<-done
	if e := failure(t, err); e.InDoubt || e.Code != 552 || e.Verdict != smtpsend.Policy || e.Phase != smtpsend.PhaseBody {
		t.Errorf("got %v, verdict %s in phase %s, in doubt %v", e, e.Verdict, e.Phase, e.InDoubt)
	}
}

func TestBytesAheadOfTheHandshake(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buf := make([]byte, 4096)
		_, _ = conn.Write([]byte("220 mx\r\n"))
		_, _ = conn.Read(buf)
		_, _ = conn.Write([]byte("250-mx\r\n250 STARTTLS\r\n"))
		_, _ = conn.Read(buf)
		_, _ = conn.Write([]byte("220 go\r\n250-mx\r\n250 AUTH PLAIN\r\n"))
		_, _ = conn.Read(buf)
	}()
	addr := listener.Addr().(*net.TCPAddr)
	relay := smtpsend.Relay{Host: "127.0.0.1", Port: addr.Port, Username: "u", Password: "p"}
	e := failure(t, newSender(t, smtpsend.Options{Timeout: 3 * time.Second}).Verify(t.Context(), relay))
	<-done
	if e.Name() != "ETLS" || e.Verdict != smtpsend.Auth || !strings.Contains(e.Error(), "ahead of the TLS handshake") {
		t.Errorf("%s %s: %v", e.Name(), e.Verdict, e)
	}
}

func TestTLSModes(t *testing.T) {
	type row struct {
		name    string
		server  testsmtp.Security
		relay   smtpsend.Relay
		trusted bool
		tls     bool   // the message came over TLS
		fails   string // name of the error; empty: delivered
		verdict smtpsend.Verdict
	}
	login := smtpsend.Relay{Username: "user", Password: "secret-password"}
	with := func(r smtpsend.Relay, change func(*smtpsend.Relay)) smtpsend.Relay { change(&r); return r }
	for _, row := range []row{
		{name: "auto without credentials, offered", server: testsmtp.STARTTLS, tls: true},
		{name: "auto without credentials, not offered", server: testsmtp.Clear},
		{name: "auto with credentials, offered", server: testsmtp.STARTTLS, relay: login, trusted: true, tls: true},
		{name: "auto with credentials, not offered", server: testsmtp.Clear, relay: login, fails: "ETLS", verdict: smtpsend.Auth},
		{name: "auto with credentials, certificate unknown", server: testsmtp.STARTTLS, relay: login, fails: "ETLS", verdict: smtpsend.Auth},
		{name: "opportunistic with credentials, certificate unknown", server: testsmtp.STARTTLS, relay: with(login, func(r *smtpsend.Relay) { r.TLS = smtpsend.TLSOpportunistic }), fails: "ETLS", verdict: smtpsend.Auth},
		{name: "required, certificate unknown", server: testsmtp.STARTTLS, relay: smtpsend.Relay{TLS: smtpsend.TLSRequired}, fails: "ETLS", verdict: smtpsend.Auth},
		{name: "required, certificate not looked at", server: testsmtp.STARTTLS, relay: smtpsend.Relay{TLS: smtpsend.TLSRequired, InsecureSkipVerify: true}, tls: true},
		{name: "required, name is another's", server: testsmtp.STARTTLS, relay: smtpsend.Relay{TLS: smtpsend.TLSRequired, Host: "127.0.0.2"}, trusted: true, fails: "ETLS", verdict: smtpsend.Auth},
		{name: "required, version too low for us", server: testsmtp.STARTTLS, relay: smtpsend.Relay{TLS: smtpsend.TLSRequired, MinVersion: tls.VersionTLS13}, trusted: true, tls: true},
		{name: "implicit", server: testsmtp.Implicit, relay: with(login, func(r *smtpsend.Relay) { r.TLS = smtpsend.TLSImplicit }), trusted: true, tls: true},
		{name: "implicit to a port that is not", server: testsmtp.Clear, relay: smtpsend.Relay{TLS: smtpsend.TLSImplicit}, fails: "ETLS", verdict: smtpsend.Soft},
		{name: "none", server: testsmtp.STARTTLS, relay: smtpsend.Relay{TLS: smtpsend.TLSNone}},
		{name: "none with credentials on this machine", server: testsmtp.Clear, relay: with(login, func(r *smtpsend.Relay) { r.TLS = smtpsend.TLSNone })},
		{name: "login refused", server: testsmtp.STARTTLS, relay: with(login, func(r *smtpsend.Relay) { r.Password = "wrong-password" }), trusted: true, fails: "EAUTH", verdict: smtpsend.Auth},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o := testsmtp.Options{Security: row.server}
			if row.relay.Username != "" {
				o.Username, o.Password = "user", "secret-password"
			}
			if row.relay.Host != "" {
				o.Addr = "0.0.0.0:0"
			}
			server := testsmtp.Start(t, o)
			if row.relay.Host == "" {
				row.relay.Host = server.Host()
			}
			row.relay.Port = server.Port()
			if row.trusted {
				row.relay.CA = server.CA()
			}
			var log bytes.Buffer
			sender := newSender(t, smtpsend.Options{Timeout: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			result, err := sender.Send(t.Context(), row.relay, mail("b@example.org"))
			if row.fails == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := server.Wait(1)[0]; got.TLS != row.tls || (result.TLS != "") != row.tls || got.Login != row.relay.Username {
					t.Errorf("TLS %v (%s), login %q", got.TLS, result.TLS, got.Login)
				}
				if err := sender.Verify(t.Context(), row.relay); err != nil {
					t.Errorf("verify: %v", err)
				}
			} else {
				e := failure(t, err)
				if e.Name() != row.fails || e.Verdict != row.verdict || e.Scope != smtpsend.ScopeAccount {
					t.Errorf("%s %s %s: %v", e.Name(), e.Verdict, e.Scope, e)
				}
				if verify := failure(t, sender.Verify(t.Context(), row.relay)); verify.Name() != row.fails {
					t.Errorf("verify: %v", verify)
				}
			}
			if said := fmt.Sprint(err) + log.String(); strings.Contains(said, "password") {
				t.Errorf("a password is told: %s", said)
			}
		})
	}
}

// TestNeverLogsInInClear: what a relay elsewhere would need is an address that is not loopback; this machine's own will do.
func TestNeverLogsInInClear(t *testing.T) {
	host := outwardAddress(t)
	server := testsmtp.Start(t, testsmtp.Options{Addr: net.JoinHostPort(host, "0"), Username: "u", Password: "p", Record: true})
	sender := newSender(t, smtpsend.Options{})
	for _, mode := range []smtpsend.TLSMode{smtpsend.TLSAuto, smtpsend.TLSRequired, smtpsend.TLSOpportunistic, smtpsend.TLSNone} {
		relay := smtpsend.Relay{Host: host, Port: server.Port(), TLS: mode, Username: "u", Password: "p"}
		e := failure(t, sender.Verify(t.Context(), relay))
		if e.Verdict != smtpsend.Auth {
			t.Errorf("%s: %s: %v", mode, e.Verdict, e)
		}
	}
	if i := slices.IndexFunc(server.Commands(), func(c string) bool { return strings.HasPrefix(c, "AUTH") }); i >= 0 {
		t.Fatal("logged in")
	}
	relay := smtpsend.Relay{Host: host, Port: server.Port(), TLS: smtpsend.TLSNone, Username: "u", Password: "p", AllowInsecureAuth: true}
	if err := sender.Verify(t.Context(), relay); err != nil {
		t.Errorf("allowed, and yet: %v", err)
	}
}

// outwardAddress is an address of this machine that is not loopback, or, on a machine without any, the one that reaches it all the same.
func outwardAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	t.Fatal("this machine has no address besides loopback")
	return ""
}

func TestTokens(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.STARTTLS, Username: "user", Token: "token-1"})
	sender := newSender(t, smtpsend.Options{})
	for _, method := range []string{"", "XOAUTH2", "OAUTHBEARER"} {
		relay := relayTo(server)
		relay.Username, relay.AccessToken, relay.AuthMethod = "user", "token-1", method
		if err := sender.Verify(t.Context(), relay); err != nil {
			t.Errorf("%q: %v", method, err)
		}
		relay.AccessToken = "token-2"
		if e := failure(t, sender.Verify(t.Context(), relay)); e.Name() != "EAUTH" || strings.Contains(e.Error(), "token-") {
			t.Errorf("%q with an old token: %v", method, e)
		}
	}
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	sender := newSender(t, smtpsend.Options{Timeout: 10 * time.Second})
	for _, row := range []struct {
		host, name string
		phase      smtpsend.Phase
	}{
		{"127.0.0.1", "ESOCKET", smtpsend.PhaseConnect},
		{"no-such-host.invalid", "EDNS", smtpsend.PhaseDNS},
	} {
		result, err := sender.Send(t.Context(), smtpsend.Relay{Host: row.host, Port: port}, mail("b@example.org"))
		if e := failure(t, err); e.Name() != row.name || e.Phase != row.phase || e.Verdict != smtpsend.Soft || e.InDoubt {
			t.Errorf("%s: %s at %s, %s: %v", row.host, e.Name(), e.Phase, e.Verdict, e)
		}
		if len(result.Recipients) != 1 {
			t.Errorf("recipients: %v", result.Recipients)
		}
	}
}

func TestRefusedBeforeConnecting(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{})
	good := mail("b@example.org")
	for name, change := range map[string]func(*smtpsend.Relay, *smtpsend.Message){
		"no recipients":         func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = nil },
		"empty":                 func(_ *smtpsend.Relay, m *smtpsend.Message) { m.Data = nil },
		"parameter injected":    func(_ *smtpsend.Relay, m *smtpsend.Message) { m.From = "a@b.example> SIZE=1 AUTH=<x" },
		"command injected":      func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{"a@b.example\r\nDATA"} },
		"bare LF":               func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{"a\n@b.example"} },
		"NUL":                   func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{"a\x00@b.example"} },
		"one of two":            func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{"a@b.example", "a b@c.example"} },
		"no domain":             func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{"a"} },
		"not UTF-8":             func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{"\xff@b.example"} },
		"long":                  func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{strings.Repeat("a", 65) + "@b.example"} },
		"envelope id injected":  func(_ *smtpsend.Relay, m *smtpsend.Message) { m.DSN.Envelope = "a b" },
		"notify condition":      func(_ *smtpsend.Relay, m *smtpsend.Message) { m.DSN.Notify = "NEVER> X=<" },
		"no host":               func(r *smtpsend.Relay, _ *smtpsend.Message) { r.Host = "" },
		"EHLO name injected":    func(r *smtpsend.Relay, _ *smtpsend.Message) { r.EHLOName = "a\r\nMAIL" },
		"host is two words":     func(r *smtpsend.Relay, _ *smtpsend.Message) { r.Host = "a b" },
		"local address is none": func(r *smtpsend.Relay, _ *smtpsend.Message) { r.LocalAddress = "eth0" },
		"method without secret": func(r *smtpsend.Relay, _ *smtpsend.Message) { r.AuthMethod = "XOAUTH2" },
	} {
		relay, m := relayTo(server), good
		change(&relay, &m)
		result, err := sender.Send(t.Context(), relay, m)
		if e := failure(t, err); !e.Permanent() || e.Phase != smtpsend.PhaseCheck {
			t.Errorf("%s: %v", name, e)
		}
		if len(result.Recipients) != len(m.To) {
			t.Errorf("%s: %d recipients", name, len(result.Recipients))
		}
	}
	if server.Connections() != 0 {
		t.Error("the relay was bothered")
	}
}

func TestCancelEndsEveryWait(t *testing.T) {
	for _, verb := range []string{"CONNECT", "MAIL", "DOT"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			reached := make(chan struct{})
			server := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
				if c.Verb == verb {
					close(reached)
					return testsmtp.Action{Hang: true}
				}
				return testsmtp.Action{}
			}})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-reached; cancel() }()
			_, err := newSender(t, smtpsend.Options{}).Send(ctx, relayTo(server), mail("b@example.org"))
			e := failure(t, err)
			if !errors.Is(err, context.Canceled) || e.InDoubt != (verb == "DOT") || e.Permanent() {
				t.Errorf("in doubt %v: %v", e.InDoubt, err)
			}
			eventually(t, "the connection is closed", func() bool { return server.Open() == 0 })
		})
	}
}

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
	// The server counts a connection until it has noticed the end of it, so a closing one may overlap with its successor.
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
	if e := failure(t, err); e.Name() != "ETIMEDOUT" || e.Phase != smtpsend.PhaseConnect || !errors.Is(err, context.DeadlineExceeded) {
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

// TestManyRecipients sends more than fit a window and a transaction.
func TestManyRecipients(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{MaxRecipients: 180})
	sender := newSender(t, smtpsend.Options{})
	relay := relayTo(server)
	relay.RecipientsPerTransaction = 250
	var to []string
	for i := range 1000 {
		local := "user"
		if i%50 == 0 {
			local = "rcpt-550"
		}
		to = append(to, fmt.Sprintf("%s+%d@example.org", local, i))
	}
	result, err := sender.Send(t.Context(), relay, mail(to...))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, m := range server.Messages() {
		for _, address := range m.To {
			got[address]++
		}
	}
	for i, r := range result.Recipients {
		refused := strings.HasPrefix(to[i], "rcpt-550")
		if r.Address != to[i] || refused != (r.Err != nil) || refused == (got[to[i]] == 1) || got[to[i]] > 1 {
			t.Errorf("%s: %v, %d copies", r.Address, r.Err, got[to[i]])
		}
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{Registry: reg})
	_, _ = sender.Send(t.Context(), relayTo(server), mail("b@example.org", "rcpt-550@example.org", "rcpt-451@example.org"))
	_, _ = sender.Send(t.Context(), relayTo(server), mail("dot-close@example.org"))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := strings.TrimPrefix(f.GetName(), "postroom_smtp_")
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"recipients_total delivered": 1, "recipients_total hard": 1, "recipients_total soft": 1, "recipients_total in_doubt": 1,
		"recipients_total policy": 0, "connections_opened_total": 1, "connections": 0, "phase_seconds dot": 2, "phase_seconds tls": 0,
	}
	for name, n := range want {
		if v, ok := got[name]; !ok || v != n {
			t.Errorf("%s: %v, want %v", name, got[name], n)
		}
	}
	if _, err := smtpsend.New(smtpsend.Options{Registry: reg}); err == nil {
		t.Error("registered twice")
	}
}

func TestUnknownClassifier(t *testing.T) {
	if _, err := smtpsend.New(smtpsend.Options{Classifier: "clever"}); err == nil {
		t.Error("accepted")
	}
}
