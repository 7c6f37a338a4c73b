package smtpsend_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/testkit"
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
	return smtpsend.Message{From: "a@example.com", To: to,
		Body: smtpsend.Bytes("Subject: hello\r\n\r\nworld\r\n")}
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
	if diff := cmp.Diff([]string{"b@example.org", "c@example.org"}, got.To); diff != "" ||
		got.From != "a@example.com" {
		t.Errorf("envelope: from %s, to %s", got.From, diff)
	}
	if diff := cmp.Diff("Subject: hello\r\n\r\nworld\r\n", string(got.Data)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b@example.org", "c@example.org"}, result.Delivered()); diff != "" {
		t.Error(diff)
	}
	if result.Code != 250 || result.RemoteName != "testsmtp" || result.RemoteAddress != server.Addr() ||
		result.TLS != "" || result.Reused {
		t.Errorf("result: %+v", result)
	}
	if result.Timings.Connect == 0 || result.Timings.Data == 0 || result.Timings.Dot == 0 {
		t.Errorf("timings: %+v", result.Timings)
	}
}

// TestFaultsAtEachPhase counts that a failure before the dot never delivers and is never in doubt, and that
// one after it is.
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
				f.Store = verb == "DOT"
				server := testsmtp.Start(t, testsmtp.Options{NoPipelining: !pipelining,
					Respond: func(c testsmtp.Command) testsmtp.Action {
						if c.Verb == verb {
							return f.Action
						}
						return testsmtp.Action{}
					}})
				timeout := 20 * time.Second
				if f.Hang {
					timeout = 2 * time.Second // long enough for the steps before
				}
				sender := newSender(t, smtpsend.Options{Timeout: timeout})
				send := sync.OnceValues(func() (smtpsend.Result, error) {
					return sender.Send(t.Context(), relayTo(server), mail("b@example.org"))
				})
				if f.Hang { // at once, not as many as there are cores: they wait more than they work
					go send()
				}
				t.Run(fmt.Sprintf("%s/%s/pipelining=%v", verb, f.name, pipelining), func(t *testing.T) {
					t.Parallel()
					result, err := send()
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

// TestPrematureReply: a relay that gives up in the middle of the content says why before it closes, or stops
// reading. Losing that text would make a quota or a size limit look like a broken line; waiting for it to
// read on would take as long as the deadline.
func TestPrematureReply(t *testing.T) {
	discard := func(conn net.Conn) { _, _ = io.CopyN(io.Discard, conn, 1<<20) }
	large := bytes.Repeat([]byte("0123456789\r\n"), 1<<20) // more than all buffers on the way hold
	for _, row := range []struct {
		name, reply string
		then        func(net.Conn)
		code        int
		verdict     smtpsend.Verdict
	}{
		{"552 over TLS, and no more reading", "552 5.3.4 Message too big\r\n", nil, 552, smtpsend.Policy},
		{"552, and no more reading", "552 5.3.4 Message too big\r\n", nil, 552, smtpsend.Policy},
		{"552, and closes", "552 5.3.4 Message too big\r\n", func(conn net.Conn) {
			_ = conn.(*net.TCPConn).CloseRead()
		}, 552, smtpsend.Policy},
		{"552, and reads on for a while", "552 5.3.4 Message too big\r\n", discard, 552, smtpsend.Policy},
		{"421, and no more reading", "421 4.3.2 Shutting down\r\n", nil, 421, smtpsend.Soft},
		{"421, and reads on for a while", "421 4.3.2 Shutting down\r\n", discard, 421, smtpsend.Soft},
		{"a yes to half a message", "250 2.0.0 Ok\r\n", discard, 0, smtpsend.Soft},
		{"nonsense", "enough\r\n", discard, 0, smtpsend.Soft},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			relay := smtpsend.Relay{Host: "127.0.0.1", TLS: smtpsend.TLSNone}
			encrypt := func(conn net.Conn) net.Conn { return conn }
			if strings.Contains(row.name, "TLS") {
				relay.TLS, relay.InsecureSkipVerify = smtpsend.TLSImplicit, true
				config := serverTLS(t)
				encrypt = func(conn net.Conn) net.Conn { return tls.Server(conn, config) }
			}
			address := listening(t, func(conn net.Conn) {
				conn = encrypt(conn)
				buf := make([]byte, 64<<10)
				for _, reply := range []string{"220 mx\r\n", "250-mx\r\n250 PIPELINING\r\n",
					"250 ok\r\n250 ok\r\n354 go\r\n", row.reply} {
					_, _ = io.WriteString(conn, reply)
					if reply != row.reply {
						_, _ = conn.Read(buf)
					}
				}
				if row.then != nil {
					row.then(conn)
				}
				<-over
			})
			defer close(over)
			_, port, _ := net.SplitHostPort(address)
			relay.Port, _ = strconv.Atoi(port)
			m := mail("b@example.org")
			m.Body = smtpsend.Bytes(large)
			m.BeforeDot = func(context.Context, []string) error { t.Error("the dot was near"); return nil }
			begun := time.Now()
			_, err := newSender(t, smtpsend.Options{Timeout: time.Minute}).Send(t.Context(), relay, m)
			if e := failure(t, err); e.InDoubt || e.Code != row.code || e.Verdict != row.verdict ||
				e.Phase != smtpsend.PhaseBody {
				t.Errorf("got %v, verdict %s in phase %s, in doubt %v", e, e.Verdict, e.Phase, e.InDoubt)
			}
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("noticed after %s", took)
			}
		})
	}
}

// serverTLS is a certificate no one knows.
func serverTLS(t *testing.T) *tls.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	return &tls.Config{Certificates: server.TLS.Certificates}
}

// TestLargeMessages: listening during the write leaves the connection as it was, in clear and over TLS.
func TestLargeMessages(t *testing.T) {
	for _, security := range []testsmtp.Security{testsmtp.Clear, testsmtp.STARTTLS} {
		server := testsmtp.Start(t, testsmtp.Options{Security: security})
		sender := newSender(t, smtpsend.Options{})
		m := mail("b@example.org")
		content := append(smtpsend.Bytes("Subject: hello\r\n\r\nworld\r\n"), bytes.Repeat([]byte("0123456789\r\n"),
			100_000)...)
		m.Body = content
		for range 3 {
			if _, err := sender.Send(t.Context(), relayTo(server), m); err != nil {
				t.Fatal(err)
			}
		}
		for _, got := range server.Wait(3) {
			if !bytes.Equal(got.Data, content) {
				t.Errorf("%d bytes arrived of %d", len(got.Data), len(content))
			}
		}
		if server.Connections() != 1 {
			t.Errorf("%d connections", server.Connections())
		}
	}
}

func TestUnreachable(t *testing.T) {
	port := testkit.FreePort(t)
	sender := newSender(t, smtpsend.Options{Timeout: 30 * time.Second})
	for _, row := range []struct {
		host, name string
		phase      smtpsend.Phase
	}{
		{"127.0.0.1", "ESOCKET", smtpsend.PhaseConnect},
		{"no-such-host.invalid", "EDNS", smtpsend.PhaseDNS},
	} {
		result, err := sender.Send(t.Context(), smtpsend.Relay{Host: row.host, Port: port}, mail("b@example.org"))
		if e := failure(t, err); e.Name() != row.name || e.Phase != row.phase || e.Verdict != smtpsend.Soft ||
			e.InDoubt {
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
		"no recipients": func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = nil },
		"empty":         func(_ *smtpsend.Relay, m *smtpsend.Message) { m.Body = smtpsend.Bytes(nil) },
		"absent":        func(_ *smtpsend.Relay, m *smtpsend.Message) { m.Body = nil },
		"parameter injected": func(_ *smtpsend.Relay, m *smtpsend.Message) {
			m.From = "a@b.example> SIZE=1 AUTH=<x"
		},
		"command injected": func(_ *smtpsend.Relay, m *smtpsend.Message) {
			m.To = []string{"a@b.example\r\nDATA"}
		},
		"bare LF": func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{"a\n@b.example"} },
		"NUL": func(_ *smtpsend.Relay, m *smtpsend.Message) {
			m.To = []string{"a\x00@b.example"}
		},
		"one of two": func(_ *smtpsend.Relay, m *smtpsend.Message) {
			m.To = []string{"a@b.example", "a b@c.example"}
		},
		"no domain": func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{"a"} },
		"not UTF-8": func(_ *smtpsend.Relay, m *smtpsend.Message) { m.To = []string{"\xff@b.example"} },
		"long": func(_ *smtpsend.Relay, m *smtpsend.Message) {
			m.To = []string{strings.Repeat("a", 65) + "@b.example"}
		},
		"envelope id injected":  func(_ *smtpsend.Relay, m *smtpsend.Message) { m.DSN.Envelope = "a\r\nb" },
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
	_, _ = sender.Send(t.Context(), relayTo(server), mail("b@example.org", "rcpt-550@example.org",
		"rcpt-451@example.org"))
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
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() +
				float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"recipients_total delivered": 1, "recipients_total hard": 1, "recipients_total soft": 1,
		"recipients_total in_doubt": 1,
		"recipients_total policy":   0, "connections_opened_total": 1, "connections": 0, "phase_seconds dot": 2,
		"phase_seconds tls": 0,
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
