package smtpd_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/smtpd"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// timeout is for conditions that hold immediately on an idle machine.
const timeout = 30 * time.Second

// token is what the access of a world knows: it may do everything.
const token = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// world is an inlet with an outbox that keeps what it gets.
type world struct {
	t      testing.TB
	inlet  *smtpd.Inlet
	outbox *outbox
	ca     *x509.CertPool
	files  testkit.Certificate
	stop   func() // ends Run and waits for it; once is enough
	reg    *prometheus.Registry
}

type settings struct {
	smtpd.Options
	access *access.Access // nil: knows token, and nothing else
	audit  *audit.Log     // nil: one that no one reads
	log    io.Writer      // gets the log at debug as well; nil if no one does
	tls    bool           // with a certificate, STARTTLS and an address for implicit TLS
}

func setup(t testing.TB, s settings) *world {
	t.Helper()
	w := &world{t: t, outbox: &outbox{}, reg: prometheus.NewRegistry()}
	o := s.Options
	o.Listen, o.Hostname, o.Metrics = "127.0.0.1:0", "mail.example.com", w.reg
	out := t.Output()
	if s.log != nil {
		out = io.MultiWriter(out, s.log)
	}
	o.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if s.tls {
		w.files = testkit.NewCertificate(t)
		w.ca = w.files.Issue(t, "first")
		o.ListenTLS, o.TLSCert, o.TLSKey = "127.0.0.1:0", w.files.Cert, w.files.Key
	}
	db := testredis.New(t)
	if s.access == nil {
		s.access = oneToken(t, db)
	}
	if s.audit == nil {
		s.audit = auditLog(t, db)
	}
	inlet, err := smtpd.New(smtpd.Parts{Submit: w.outbox.SubmitSMTP, Accounts: knownAccounts(t, db),
		Access: s.access,
		Audit:  s.audit}, o)
	if err != nil {
		t.Fatal(err)
	}
	w.inlet = inlet
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- inlet.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run: %v", err)
			}
		case <-time.After(timeout):
			t.Error("the inlet did not stop")
		}
	})
	t.Cleanup(w.stop)
	return w
}

func auditLog(t testing.TB, db *redisdb.DB) *audit.Log {
	t.Helper()
	ring, err := seal.New([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := audit.New(db, ring, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// outbox keeps the messages it gets.
type outbox struct {
	mu     sync.Mutex
	got    []api.SubmitRequest
	answer func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) // nil: queued as Q1, Q2…
}

func (o *outbox) SubmitSMTP(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	if o.answer != nil {
		return o.answer(ctx, req)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.got = append(o.got, req)
	return api.SubmitAnswer{QueueID: fmt.Sprintf("Q%d", len(o.got))}, nil
}

func (o *outbox) all() []api.SubmitRequest {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.got
}

// oneToken returns an access that knows token.
func oneToken(t testing.TB, db *redisdb.DB) *access.Access {
	t.Helper()
	rights, err := access.New(db, testkit.Ring(t, "secret"), access.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return rights
}

// knownAccounts returns accounts with the default account and acme.
func knownAccounts(t testing.TB, db *redisdb.DB) *accounts.Accounts {
	t.Helper()
	ring, err := seal.New(make([]byte, seal.MinSecret))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := gateways.New(db, ring, gateways.Options{})
	if err != nil {
		t.Fatal(err)
	}
	account := api.Account{Account: "acme", Email: "shop@example.com",
		SMTP: &api.SMTPServer{Host: "relay.example.com", Port: 25}}
	known, err := accounts.New(db, ring, shared, accounts.Options{Default: &account})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := known.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	return known
}

// client speaks SMTP line by line.
type client struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return newClient(t, conn)
}

func newClient(t testing.TB, conn net.Conn) *client {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, bufio.NewReader(conn)}
}

// connect gives a client that has read the greeting.
func (w *world) connect() *client {
	w.t.Helper()
	c := dial(w.t, w.inlet.Addr())
	c.expect("220 mail.example.com ESMTP Postroom")
	return c
}

// loggedIn gives a client ready for MAIL.
func (w *world) loggedIn() *client {
	w.t.Helper()
	c := w.connect()
	c.say("EHLO app.example.com", `(?s)250-mail\.example\.com.*`)
	c.say("AUTH PLAIN "+plain("acme", token), "235 2.7.0 Authentication succeeded")
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatalf("send %.40q: %v", text, err)
	}
}

var replyLine = regexp.MustCompile(`^[2345][0-9][0-9][ -][ -~]*\r\n$`)

// read gives the next reply, all of its lines.
func (c *client) read() (string, error) {
	reply := ""
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return reply + line, err
		}
		if !replyLine.MatchString(line) {
			return line, fmt.Errorf("%q is no line of a reply", line)
		}
		reply += strings.TrimSuffix(line, "\r\n")
		if line[3] == ' ' {
			return reply, nil
		}
		reply += "\n"
	}
}

// expect reads a reply that matches a pattern as a whole.
func (c *client) expect(pattern string) string {
	c.t.Helper()
	got, err := c.read()
	if err != nil {
		c.t.Fatalf("want %q: %v after %q", pattern, err, got)
	}
	if !regexp.MustCompile("^(" + pattern + ")$").MatchString(got) {
		c.t.Fatalf("the reply is %q, want %q", got, pattern)
	}
	return got
}

func (c *client) say(line, pattern string) string {
	c.t.Helper()
	c.send(line + "\r\n")
	return c.expect(pattern)
}

// begin brings a message up to its content.
func (c *client) begin() {
	c.t.Helper()
	c.say("MAIL FROM:<shop@example.com>", "250 .*")
	c.say("RCPT TO:<ann@example.net>", "250 .*")
	c.say("DATA", "354 .*")
}

// closed checks that the inlet hung up.
func (c *client) closed() {
	c.t.Helper()
	if got, err := c.read(); err == nil || got != "" {
		c.t.Fatalf("got %q (%v), want the end of the connection", got, err)
	}
}

func plain(user, pass string) string {
	return base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00" + pass))
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// startTLS continues encrypted.
func (c *client) startTLS(ca *x509.CertPool) *client {
	c.t.Helper()
	c.say("STARTTLS", "220 2.0.0 Ready to start TLS")
	encrypted := tls.Client(c.conn, &tls.Config{RootCAs: ca, ServerName: "localhost"})
	if err := encrypted.Handshake(); err != nil {
		c.t.Fatal(err)
	}
	return newClient(c.t, encrypted)
}
