package smtpd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/server/smtpd"
)

// returns expects mail to addresses that begin with "bounces+good" at example.com, and keeps what it gets.
type returns struct {
	mu   sync.Mutex
	got  []string              // recipient, then the mail
	fail func(to string) error // nil if all is taken
}

func (r *returns) Expected(address string) error {
	switch {
	case strings.HasPrefix(address, "bounces+good") && strings.HasSuffix(address, "@example.com"):
		return nil
	case strings.HasPrefix(address, "bounces+"):
		return fault.New(fault.NotFound, "", "no such return path")
	}
	return fault.New(fault.Forbidden, "", "not for here")
}

func (r *returns) Receive(_ context.Context, mail io.Reader, to string) (bounce.Report, feedback.Outcome,
	error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(to); err != nil {
			return bounce.Report{}, feedback.Outcome{}, err
		}
	}
	content, err := io.ReadAll(mail)
	r.got = append(r.got, to, string(content))
	return bounce.Report{}, feedback.Outcome{}, err
}

func (r *returns) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// startBounces runs a door for returned mail until the test ends.
func startBounces(t *testing.T, to *returns, o smtpd.BounceOptions) *smtpd.Inlet {
	t.Helper()
	o.Hostname, o.Logger = "bounce.example.com", slog.New(slog.NewTextHandler(t.Output(), nil))
	inlet, err := smtpd.NewBounceListener(to, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- inlet.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return inlet
}

func dialBounces(t *testing.T, address string) *client {
	t.Helper()
	network := "tcp"
	if strings.Contains(address, "/") {
		network = "unix"
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return newClient(t, conn)
}

const bounceText = "From: MAILER-DAEMON@mx.example.net\r\nSubject: Undelivered\r\n\r\nno such user\r\n"

func TestReturnedMailOverSMTP(t *testing.T) {
	to, reg := &returns{}, prometheus.NewRegistry()
	inlet := startBounces(t, to, smtpd.BounceOptions{
		Options: smtpd.Options{Listen: "127.0.0.1:0", Metrics: reg}})
	c := dialBounces(t, inlet.Addr())
	c.expect("220 bounce.example.com ESMTP Postroom")
	offers := c.say("EHLO mx.example.net", `(?s)250-bounce\.example\.com.*`)
	for _, not := range []string{"AUTH", "CHUNKING", "DSN", "STARTTLS"} {
		if strings.Contains(offers, not) {
			t.Errorf("%s is offered", not)
		}
	}
	c.say("AUTH PLAIN AGEAYg==", "502 .*")
	for name, sender := range map[string]string{"null": "<>", "a daemon": "<MAILER-DAEMON@mx.example.net>"} {
		c.say("MAIL FROM:"+sender+" SIZE=500 BODY=8BITMIME", "250 .*")
		c.say("RCPT TO:<bounces+good@example.com>", "250 .*")
		c.say("DATA", "354 .*")
		c.say(bounceText+".", "250 2.0.0 Ok: taken")
		if diff := cmp.Diff([]string{"bounces+good@example.com", bounceText}, to.all()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		to.got = nil
	}
	c.say("LHLO mx.example.net", "500 .*")
	c.say("QUIT", "221 .*")
	if n := counted(t, reg, "postroom_returns_messages_total", "taken"); n != 2 {
		t.Errorf("%v mails were counted", n)
	}
}

// TestBouncesNeverRelay: what is not a return path of ours is refused, whoever sends it and however it is
// written.
func TestBouncesNeverRelay(t *testing.T) {
	to := &returns{}
	inlet := startBounces(t, to, smtpd.BounceOptions{Options: smtpd.Options{Listen: "127.0.0.1:0"}})
	c := dialBounces(t, inlet.Addr())
	c.expect("220 .*")
	c.say("EHLO mx.example.net", "(?s)250.*")
	c.say("MAIL FROM:<>", "250 .*")
	for _, row := range []struct{ rcpt, want string }{
		{"<bounces+forged@example.com>", "550 5.1.1 .*"},
		{"<bounces+good@other.example>", "550 5.1.1 .*"},
		{"<ann@example.com>", "550 5.7.1 Relay access denied"},
		{"<ann@victim.example>", "550 5.7.1 Relay access denied"},
		{"<ann%victim.example@example.com>", "550 5.7.1 .*"},
		{"<@example.com:ann@victim.example>", "55[03] 5.* .*"},
		{`<"bounces+good@example.com"@victim.example>`, "55[03] 5.* .*"},
		{"<bounces+good@example.com>, <ann@victim.example>", "501 .*"},
		{"ann@victim.example", "550 5.7.1 Relay access denied"},
		{"<>", "553 .*"},
	} {
		c.say("RCPT TO:"+row.rcpt, row.want)
	}
	c.say("DATA", "554 5.5.1 No valid recipients")
	if got := to.all(); len(got) > 0 {
		t.Errorf("taken: %q", got)
	}
}

// TestGuessedReturnPathsEndTheConversation: nobody tries tokens by the thousand on one connection.
func TestGuessedReturnPathsEndTheConversation(t *testing.T) {
	inlet := startBounces(t, &returns{}, smtpd.BounceOptions{Options: smtpd.Options{Listen: "127.0.0.1:0"}})
	c := dialBounces(t, inlet.Addr())
	c.expect("220 .*")
	c.say("HELO mx.example.net", "250 .*")
	c.say("MAIL FROM:<>", "250 .*")
	for range 200 {
		c.say("RCPT TO:<bounces+guess@example.com>", "550 5.1.1 .*")
	}
	c.say("RCPT TO:<bounces+guess@example.com>", "550 5.1.1 .*")
	c.expect("421 .*")
	c.closed()
}

func TestReturnedMailIsKeptByTheSenderWhileItCannotBeTaken(t *testing.T) {
	to := &returns{fail: func(string) error { return errors.New("redis is away: dial unix /secret") }}
	inlet := startBounces(t, to, smtpd.BounceOptions{Options: smtpd.Options{Listen: "127.0.0.1:0"}})
	c := dialBounces(t, inlet.Addr())
	c.expect("220 .*")
	c.say("EHLO mx.example.net", "(?s)250.*")
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<bounces+good@example.com>", "250 .*")
	c.say("DATA", "354 .*")
	c.say(bounceText+".", "451 4.3.0 The mail can't be taken now; try again later")
	to.mu.Lock()
	to.fail = func(to string) error {
		if to == "bounces+good2@example.com" {
			return errors.New("redis is away")
		}
		return nil
	}
	to.mu.Unlock()
	c.say("MAIL FROM:<>", "250 .*")
	for _, rcpt := range []string{"bounces+good1", "bounces+good2", "bounces+good3"} {
		c.say("RCPT TO:<"+rcpt+"@example.com>", "250 .*")
	}
	c.say("DATA", "354 .*")
	c.say(bounceText+".", "451 4.3.0 .*") // the one reply is the worst
}

func TestReturnedMailOverLMTP(t *testing.T) {
	to := &returns{fail: func(to string) error {
		if to == "bounces+good2@example.com" {
			return errors.New("redis is away")
		}
		return nil
	}}
	socket := filepath.Join(shortDir(t), "lmtp")
	inlet := startBounces(t, to, smtpd.BounceOptions{LMTP: socket})
	if inlet.AddrLMTP() != socket || inlet.Addr() != "" {
		t.Errorf("listens on %q and %q", inlet.AddrLMTP(), inlet.Addr())
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	c := dialBounces(t, socket)
	c.expect("220 bounce.example.com LMTP Postroom")
	c.say("EHLO mx.example.net", "500 5.5.1 This is LMTP: say LHLO")
	c.say("MAIL FROM:<>", "503 .*")
	c.say("LHLO mx.example.net", `(?s)250-bounce\.example\.com.*PIPELINING.*`)
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<bounces+good1@example.com>", "250 .*")
	c.say("RCPT TO:<ann@example.com>", "550 5.7.1 .*")
	c.say("RCPT TO:<bounces+good2@example.com>", "250 .*")
	c.say("RCPT TO:<bounces+good3@example.com>", "250 .*")
	c.say("DATA", "354 .*")
	c.say(bounceText+".", "250 2.0.0 Ok: taken") // one reply for each recipient that was accepted
	c.expect("451 4.3.0 .*")
	c.expect("250 2.0.0 Ok: taken")
	c.say("NOOP", "250 .*")
	want := []string{"bounces+good1@example.com", bounceText, "bounces+good3@example.com", bounceText}
	if diff := cmp.Diff(want, to.all()); diff != "" {
		t.Error(diff)
	}
}

// TestReturnedMailSmuggling: what may end the content for another server does not end it here, nor is it
// taken.
func TestReturnedMailSmuggling(t *testing.T) {
	to := &returns{}
	inlet := startBounces(t, to, smtpd.BounceOptions{Options: smtpd.Options{Listen: "127.0.0.1:0"},
		LMTP: "127.0.0.1:0"})
	for name, sequence := range map[string]string{"LF . LF": "\n.\n", "LF . CRLF": "\n.\r\n",
		"CRLF . LF": "\r\n.\n", "CR . CR": "\r.\r"} {
		c := dialBounces(t, inlet.Addr())
		c.expect("220 .*")
		c.say("EHLO mx.example.net", "(?s)250.*")
		c.say("MAIL FROM:<>", "250 .*")
		c.say("RCPT TO:<bounces+good@example.com>", "250 .*")
		c.say("DATA", "354 .*")
		c.send("Subject: x\r\n\r\nbody" + sequence +
			"MAIL FROM:<>\r\nRCPT TO:<bounces+good@example.com>\r\nDATA\r\nforged\r\n.\r\n")
		c.expect("550 5.6.0 .*")
		c.say("NOOP", "250 .*")
		if got := to.all(); len(got) > 0 {
			t.Errorf("%s: taken: %q", name, got)
		}
	}
	c := dialBounces(t, inlet.Addr())
	c.expect("220 .*")
	c.say("EHLO mx.example.net", "(?s)250.*")
	c.send("BDAT 30 LAST\r\nMAIL FROM:<>\r\nRCPT TO:<x@y>\r\n")
	c.expect("502 5.5.1 BDAT is not offered")
	c.closed()
}

// TestLargeReturnedMail: a bounce with all of a large message in it is read to its end, and its beginning is
// kept.
func TestLargeReturnedMail(t *testing.T) {
	to := &returns{}
	inlet := startBounces(t, to, smtpd.BounceOptions{
		Options: smtpd.Options{Listen: "127.0.0.1:0", MaxMessage: 3 << 20}})
	c := dialBounces(t, inlet.Addr())
	c.expect("220 .*")
	c.say("EHLO mx.example.net", "(?s)250.*")
	say := func(bytes int, want string) {
		c.say("MAIL FROM:<>", "250 .*")
		c.say("RCPT TO:<bounces+good@example.com>", "250 .*")
		c.say("DATA", "354 .*")
		c.send(strings.Repeat(strings.Repeat("x", 998)+"\r\n", bytes/1000))
		c.say(".", want)
	}
	say(2<<20, "250 .*")
	if got := to.all(); len(got) != 2 || len(got[1]) != 1<<20 {
		t.Errorf("%d octets were handed over", len(strings.Join(got, "")))
	}
	say(4<<20, "552 5.3.4 .*")
	c.say("MAIL FROM:<> SIZE=4000000", "552 .*")
}

func TestReturnedMailOverTLS(t *testing.T) {
	files := testkit.NewCertificate(t)
	ca := files.Issue(t, "first")
	to := &returns{}
	inlet := startBounces(t, to, smtpd.BounceOptions{
		Options: smtpd.Options{Listen: "127.0.0.1:0", TLSCert: files.Cert, TLSKey: files.Key}})
	c := dialBounces(t, inlet.Addr())
	c.expect("220 .*")
	if offers := c.say("EHLO mx.example.net", "(?s)250.*"); !strings.Contains(offers, "STARTTLS") {
		t.Error("STARTTLS is not offered")
	}
	c = c.startTLS(ca)
	c.say("EHLO mx.example.net", "(?s)250.*")
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<bounces+good@example.com>", "250 .*")
	c.say("DATA", "354 .*")
	c.say(bounceText+".", "250 .*")
}

func TestSocketLeftBehind(t *testing.T) {
	socket := filepath.Join(shortDir(t), "lmtp")
	first, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := smtpd.NewBounceListener(&returns{}, smtpd.BounceOptions{LMTP: socket}); err == nil ||
		!strings.Contains(err.Error(), "another process listens") {
		t.Errorf("while another process listens: %v", err)
	}
	first.SetUnlinkOnClose(false)
	first.Close()
	inlet, err := smtpd.NewBounceListener(&returns{}, smtpd.BounceOptions{LMTP: socket})
	if err != nil {
		t.Fatalf("when that process was killed: %v", err)
	}
	inlet.Close()
	file := filepath.Join(filepath.Dir(socket), "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := smtpd.NewBounceListener(&returns{}, smtpd.BounceOptions{LMTP: file}); err == nil ||
		!strings.Contains(err.Error(), "isn't a socket") {
		t.Errorf("where a file is: %v", err)
	}
	if _, err := smtpd.NewBounceListener(&returns{}, smtpd.BounceOptions{}); err == nil {
		t.Error("without an address: no error")
	}
}

// shortDir is a directory whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "returns")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// FuzzBounces says anything to a bounce listener: nothing may be passed on for an address that is not
// expected, and 250 after a content means that it was.
func FuzzBounces(f *testing.F) {
	envelope := "MAIL FROM:<>\r\nRCPT TO:<bounces+good@example.com>\r\n"
	for _, seed := range []string{
		"EHLO x\r\n" + envelope + "DATA\r\n" + bounceText + ".\r\nQUIT\r\n", "LHLO x\r\n" + envelope +
			"RCPT TO:<bounces+good2@example.com>\r\nDATA\r\n.\r\n",
		"HELO x\r\n" + envelope + "DATA\r\nx\n.\n" + forged,
		"LHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\nDATA\r\nBDAT 5\r\n",
		"AUTH PLAIN\r\nSTARTTLS\r\nRSET\r\n",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	to := &returns{}
	inlet, err := smtpd.NewBounceListener(to, smtpd.BounceOptions{
		Options: smtpd.Options{Listen: "127.0.0.1:0", Hostname: "bounce.example.com", MaxMessage: 2000}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { inlet.Close() })
	f.Fuzz(func(t *testing.T, said []byte, lmtp bool) {
		to.got = nil
		c := &script{said: bytes.NewReader(said), piece: len(said) + 1}
		inlet.ConverseBounces(c, lmtp)
		taken := strings.Count(c.told.String(), "250 2.0.0 Ok: taken\r\n")
		if handed := len(to.got) / 2; handed != taken && (lmtp || taken > handed) {
			t.Fatalf("%d were taken, and %d handed over", taken, handed)
		}
		for i := 0; i < len(to.got); i += 2 {
			if to.Expected(to.got[i]) != nil {
				t.Fatalf("handed over for %q", to.got[i])
			}
		}
	})
}

// counted is the value of a counter, by the value of its label.
func counted(t *testing.T, reg *prometheus.Registry, name, value string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == value {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric %s of %s", name, value)
	return 0
}

// TestSilentConnectionsDoNotCloseTheBounceDoor: a server with a bounce gets in, and so does your own
// mail server on LMTP.
func TestSilentConnectionsDoNotCloseTheBounceDoor(t *testing.T) {
	to := &returns{}
	inlet := startBounces(t, to, smtpd.BounceOptions{LMTP: filepath.Join(t.TempDir(), "lmtp.sock"),
		Options: smtpd.Options{Listen: "127.0.0.1:0", MaxConnections: 3}})
	silent := dialBounces(t, inlet.Addr())
	silent.expect("220 .*")
	for range 2 {
		dialBounces(t, inlet.Addr()).expect("220 .*")
	}
	c := dialBounces(t, inlet.Addr())
	c.expect("220 .*")
	silent.closed()
	c.say("EHLO mx.example.net", "(?s)250.*")
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<bounces+good@example.com>", "250 .*")
	c.say("DATA", "354 .*")
	c.say(mailText+".", "250 .*")
	own := dialBounces(t, inlet.AddrLMTP())
	own.expect("220 .*")
	own.say("LHLO mail.example.com", "(?s)250.*")
}
