package smtpsend_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// sink starts smtp-sink on its own port. What it accepts is stored, a file a message, in the directory it
// returns.
func sink(t *testing.T, flags ...string) (smtpsend.Relay, string) {
	t.Helper()
	port := testkit.FreePort(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	args := append(flags, "-d", filepath.Join(dir, "%s."), "127.0.0.1:"+strconv.Itoa(port), "100")
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "root"}, args...)
	}
	cmd := exec.Command("smtp-sink", args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	relay := smtpsend.Relay{Host: "127.0.0.1", Port: port}
	eventually(t, "smtp-sink listens", func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort(relay.Host, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return relay, dir
}

// stored counts the messages smtp-sink has kept in full.
func stored(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), "world") {
			n++
		}
	}
	return n
}

// TestSMTPSink sends to Postfix' test server with each of its failures: somebody else's idea of how a relay
// misbehaves. If it must think before it answers a command of the envelope, pipelining is off: otherwise it
// would continue with the next command.
func TestSMTPSink(t *testing.T) {
	t.Parallel()
	const brief = 2 * time.Second
	var all sync.WaitGroup // at once, not as many as there are cores: they wait more than they work
	defer all.Wait()
	large := append(smtpsend.Bytes("Subject: hello\r\n\r\nworld\r\n"), bytes.Repeat([]byte("0123456789\r\n"),
		1<<20)...)
	for _, row := range []struct {
		name    string
		flags   []string
		timeout time.Duration // defaults to 15 s
		large   bool
		stored  bool
		inDoubt bool
		phase   smtpsend.Phase
		code    int
		verdict smtpsend.Verdict // empty: delivered
	}{
		{name: "accepts", stored: true},
		{name: "accepts a large message", large: true, stored: true},
		{name: "accepts without pipelining", flags: []string{"-p"}, stored: true},
		{name: "accepts without ESMTP", flags: []string{"-e"}, stored: true},
		{name: "accepts without 8BITMIME, DSN and enhanced codes", flags: []string{"-8", "-N", "-E"}, stored: true},

		{name: "hangs up after the dot", flags: []string{"-q", "."}, stored: true, inDoubt: true,
			phase: smtpsend.PhaseDot, verdict: smtpsend.Soft},
		{name: "hangs up at CONNECT", flags: []string{"-q", "CONNECT"}, phase: smtpsend.PhaseGreeting,
			verdict: smtpsend.Soft},
		{name: "hangs up at EHLO", flags: []string{"-q", "EHLO"}, phase: smtpsend.PhaseEHLO,
			verdict: smtpsend.Soft},
		{name: "hangs up at MAIL", flags: []string{"-q", "MAIL"}, phase: smtpsend.PhaseMail,
			verdict: smtpsend.Soft},
		{name: "hangs up at RCPT", flags: []string{"-q", "RCPT"}, phase: smtpsend.PhaseRcpt,
			verdict: smtpsend.Soft},
		{name: "hangs up at DATA", flags: []string{"-q", "DATA"}, phase: smtpsend.PhaseData,
			verdict: smtpsend.Soft},

		{name: "421 after the dot", flags: []string{"-Q", "."}, phase: smtpsend.PhaseDot, code: 421,
			verdict: smtpsend.Soft},
		{name: "421 at CONNECT", flags: []string{"-Q", "CONNECT"}, phase: smtpsend.PhaseGreeting, code: 421,
			verdict: smtpsend.Soft},
		{name: "421 at MAIL", flags: []string{"-Q", "MAIL"}, phase: smtpsend.PhaseMail, code: 421,
			verdict: smtpsend.Soft},
		{name: "421 at RCPT", flags: []string{"-Q", "RCPT"}, phase: smtpsend.PhaseRcpt, code: 421,
			verdict: smtpsend.Soft},
		{name: "421 at DATA", flags: []string{"-Q", "DATA"}, phase: smtpsend.PhaseData, code: 421,
			verdict: smtpsend.Soft},

		{name: "4xx at the dot", flags: []string{"-r", "."}, phase: smtpsend.PhaseDot, code: 450,
			verdict: smtpsend.Soft},
		{name: "4xx at MAIL", flags: []string{"-r", "MAIL"}, phase: smtpsend.PhaseMail, code: 450,
			verdict: smtpsend.Soft},
		{name: "4xx at RCPT", flags: []string{"-r", "RCPT"}, phase: smtpsend.PhaseRcpt, code: 450,
			verdict: smtpsend.Soft},
		{name: "4xx at DATA", flags: []string{"-r", "DATA"}, phase: smtpsend.PhaseData, code: 450,
			verdict: smtpsend.Soft},
		{name: "throttles at the dot", flags: []string{"-r", ".", "-b",
			"454 4.7.0 Throttling failure: Maximum sending rate exceeded."}, phase: smtpsend.PhaseDot, code: 454,
			verdict: smtpsend.Throttle},

		{name: "5xx at the dot", flags: []string{"-f", "."}, phase: smtpsend.PhaseDot, code: 500,
			verdict: smtpsend.Policy},
		{name: "5xx at MAIL", flags: []string{"-f", "MAIL"}, phase: smtpsend.PhaseMail, code: 500,
			verdict: smtpsend.Policy},
		{name: "5xx at DATA", flags: []string{"-f", "DATA"}, phase: smtpsend.PhaseData, code: 500,
			verdict: smtpsend.Policy},
		{name: "unknown user at RCPT", flags: []string{"-f", "RCPT", "-B", "550 5.1.1 User unknown"},
			phase: smtpsend.PhaseRcpt, code: 550, verdict: smtpsend.Hard},
		{name: "listed at CONNECT", flags: []string{"-f", "CONNECT", "-B",
			"554 5.7.1 Client host blocked using zen.spamhaus.org"}, phase: smtpsend.PhaseGreeting, code: 554,
			verdict: smtpsend.Block},

		{name: "gives up in the middle of a large message", flags: []string{"-A", "0"}, large: true,
			phase: smtpsend.PhaseBody, code: 550, verdict: smtpsend.Policy},
		{name: "gives up a while into a large message", flags: []string{"-A", "1", "-T", "4096"}, large: true,
			phase: smtpsend.PhaseBody, code: 550, verdict: smtpsend.Policy},

		{name: "thinks before it answers the dot", flags: []string{"-W", ".:1"}, stored: true},
		{name: "thinks too long before it answers the dot", flags: []string{"-W", ".:30"}, timeout: brief,
			stored: true, inDoubt: true, phase: smtpsend.PhaseDot, verdict: smtpsend.Soft},
		{name: "thinks before it answers RCPT", flags: []string{"-p", "-W", "RCPT:1:50"}, timeout: 30 * time.Second,
			stored: true},
		{name: "thinks too long before it answers MAIL", flags: []string{"-p", "-W", "MAIL:30"}, timeout: brief,
			phase: smtpsend.PhaseMail, verdict: smtpsend.Soft},
		{name: "thinks too long before it greets", flags: []string{"-W", "CONNECT:30"}, timeout: brief,
			phase: smtpsend.PhaseGreeting, verdict: smtpsend.Soft},

		{name: "reads late", flags: []string{"-H", "1", "-T", "4096"}, large: true, stored: true},
		{name: "reads too late", flags: []string{"-H", "30", "-T", "4096"}, timeout: brief, large: true,
			phase: smtpsend.PhaseBody, verdict: smtpsend.Soft},
	} {
		all.Go(func() {
			t.Run(row.name, func(t *testing.T) {
				relay, dir := sink(t, row.flags...)
				if row.timeout == 0 {
					row.timeout = 15 * time.Second
				}
				m := mail("b@example.org")
				if row.large {
					m.Body = large
				}
				_, err := newSender(t, smtpsend.Options{Timeout: row.timeout}).Send(t.Context(), relay, m)
				if row.verdict == "" {
					if err != nil {
						t.Fatal(err)
					}
				} else if e := failure(t, err); e.Verdict != row.verdict || e.InDoubt != row.inDoubt ||
					e.Code != row.code || e.Phase != row.phase {
					t.Errorf("%s at %s, in doubt %v, code %d: %v", e.Verdict, e.Phase, e.InDoubt, e.Code, e)
				}
				if row.stored {
					eventually(t, "the message is stored", func() bool { return stored(t, dir) == 1 })
				}
			})
		})
	}
}

// TestSMTPSinkChained: Postfix' server takes the next envelope with the dot as it takes any other group of
// commands.
func TestSMTPSinkChained(t *testing.T) {
	const messages = 200
	for _, row := range []struct {
		name  string
		flags []string
		fails bool
	}{
		{"accepts", nil, false},
		{"hangs up after each dot", []string{"-q", "."}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			relay, dir := sink(t, row.flags...)
			relay.Connections = 2
			sender := newSender(t, smtpsend.Options{Timeout: 20 * time.Second})
			var group sync.WaitGroup
			for range messages {
				group.Go(func() {
					_, err := sender.Send(t.Context(), relay, mail("b@example.org"))
					if row.fails {
						if e := failure(t, err); !e.InDoubt || e.Phase != smtpsend.PhaseDot {
							t.Error(e)
						}
					} else if err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			eventually(t, "every message is stored once", func() bool { return stored(t, dir) == messages })
		})
	}
}

// TestPostfixChained: a real Postfix, with every fifth message refused at RCPT, gets each of the others once.
func TestPostfixChained(t *testing.T) {
	t.Parallel()
	postfix := testsmtp.StartPostfix(t, testsmtp.PostfixOptions{})
	sender := newSender(t, smtpsend.Options{Timeout: 30 * time.Second})
	defer sender.Close() // before Postfix has to end
	relay := smtpsend.Relay{Host: "127.0.0.1", Port: postfix.Port, TLS: smtpsend.TLSNone, Connections: 2}
	const messages = 100
	var group sync.WaitGroup
	for i := range messages {
		group.Go(func() {
			refused := i%5 == 0
			m := mail("b@example.net")
			if refused {
				m.To[0] = "b@[999.1.1.1]"
			}
			m.Body = smtpsend.Bytes(fmt.Sprintf("Subject: number %d.\r\n\r\n.\r\n..\r\n", i))
			_, err := sender.Send(t.Context(), relay, m)
			switch {
			case !refused && err != nil:
				t.Error(err)
			case refused && failure(t, err).Phase != smtpsend.PhaseRcpt:
				t.Error(err)
			}
		})
	}
	group.Wait()
	got := map[string]int{}
	for _, file := range postfix.Wait(t, messages-messages/5) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, subject, _ := strings.Cut(string(b), "Subject: ")
		number, content, _ := strings.Cut(subject, "\n")
		if !strings.HasSuffix(content, "\n\n.\n..\n") { // Postfix adds the headers that are missing
			t.Errorf("%s: %q", number, content)
		}
		got[number]++
	}
	for i := range messages {
		want := 1
		if i%5 == 0 {
			want = 0
		}
		if n := got[fmt.Sprintf("number %d.", i)]; n != want {
			t.Errorf("message %d arrived %d times", i, n)
		}
	}
}
