package smtpsend_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// at returns a relay at an address.
func at(t *testing.T, address string) smtpsend.Relay {
	t.Helper()
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return smtpsend.Relay{Host: host, Port: port}
}

// If private addresses are refused, nothing connects to them, and no error shows whether a port is open.
func TestRefusedDestinations(t *testing.T) {
	dialed := make(chan struct{}, 100)
	open := listening(t, func(net.Conn) { dialed <- struct{}{} })
	here := at(t, open)
	public := dialing.New(dialing.Options{Setting: "relays.allowPrivate"})
	private := dialing.New(dialing.Options{AllowPrivate: true})
	const notPublic, never = "the address is not a public one, and relays.allowPrivate is off", "never dialed"
	for _, row := range []struct {
		name  string
		relay smtpsend.Relay
		guard *dialing.Guard
		says  string
	}{
		{"open port", here, public, notPublic},
		{"closed port", smtpsend.Relay{Host: "127.0.0.1", Port: 1}, public, notPublic},
		{"by name", smtpsend.Relay{Host: "localhost", Port: here.Port}, public, notPublic},
		{"mapped", smtpsend.Relay{Host: "::ffff:127.0.0.1", Port: here.Port}, public, notPublic},
		{"http proxy", smtpsend.Relay{Host: "93.184.215.14", Proxy: "http://" + open}, public, notPublic},
		{"https proxy", smtpsend.Relay{Host: "93.184.215.14", Proxy: "https://" + open}, public, notPublic},
		{"socks proxy", smtpsend.Relay{Host: "93.184.215.14", Proxy: "socks5://" + open}, public, notPublic},
		{"behind a public proxy", smtpsend.Relay{Host: "10.0.0.1", Proxy: "socks5://93.184.215.14"}, public,
			notPublic},
		{"metadata", smtpsend.Relay{Host: "169.254.169.254", Port: 80}, private, never},
		{"proxy at metadata", smtpsend.Relay{Host: "relay.test", Proxy: "http://169.254.169.254"}, private, never},
		{"metadata behind a proxy", smtpsend.Relay{Host: "169.254.169.254", Proxy: "http://" + open}, private,
			never},
		{"metadata of the operator", smtpsend.Relay{Host: "169.254.169.254", OperatorsOwn: true}, public, never},
	} {
		for _, classifier := range []string{"full", "basic"} {
			t.Run(row.name+"/"+classifier, func(t *testing.T) {
				s := newSender(t, smtpsend.Options{Guard: row.guard, Classifier: classifier})
				_, err := s.Send(t.Context(), row.relay, mail("b@example.org"))
				for _, err := range []error{err, s.Verify(t.Context(), row.relay)} {
					// a failure of the account's settings: other relays are tried, and its mail may be held
					e := failure(t, err)
					if e.Verdict != smtpsend.Auth || e.Scope != smtpsend.ScopeAccount || !e.Elsewhere() ||
						!errors.Is(e, dialing.ErrRefused) {
						t.Errorf("%s %s at %s: %v", e.Verdict, e.Scope, e.Phase, e)
					}
					if !strings.HasSuffix(e.Error(), row.says) || strings.Contains(e.Error(), "127.0.0") {
						t.Errorf("told: %v", e)
					}
				}
			})
		}
	}
	if n := len(dialed); n > 0 {
		t.Errorf("%d connections", n)
	}
	server := testsmtp.Start(t, testsmtp.Options{})
	own := relayTo(server)
	own.OperatorsOwn = true
	if err := newSender(t, smtpsend.Options{Guard: public}).Verify(t.Context(), own); err != nil {
		t.Errorf("the operator's own relay: %v", err)
	}
}

// The text of a program that isn't an SMTP server goes only to the log, at debug.
func TestBannersAreNotTold(t *testing.T) {
	for _, row := range []struct{ name, greeting, answer, says string }{
		{"SSH", "SSH-2.0-secret\r\n", "", "greeting: not an SMTP reply"},
		{"POP3", "+OK secret ready\r\n", "", "greeting: not an SMTP reply"},
		{"IMAP", "* OK secret ready\r\n", "", "greeting: not an SMTP reply"},
		{"NNTP", "200 secret news\r\n", "", "greeting: the relay greets with 200, not with 220: its text isn't shown"},
		{"an answer too early", "250 secret\r\n", "", "greeting: the relay greets with 250, not with 220: its text isn't shown"},
		{"NNTP, full", "400 secret is full\r\n", "", "greeting: no answer of an SMTP server: 400"},
		{"FTP", "220 secret ready\r\n", "530 Log in to secret first\r\n", "ehlo: no answer of an SMTP server: 530"},
		{"FTP, unknown command", "220 secret ready\r\n", "500 secret: EHLO not understood\r\n",
			"ehlo: no answer of an SMTP server: 500"},
		{"Redis behind a greeting", "220 ready\r\n", "-ERR unknown command, with secret\r\n",
			"ehlo: not an SMTP reply"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			relay := at(t, listening(t, func(conn net.Conn) {
				_, _ = io.WriteString(conn, row.greeting)
				for b := make([]byte, 512); row.answer != ""; {
					if _, err := conn.Read(b); err != nil {
						return
					}
					_, _ = io.WriteString(conn, row.answer)
				}
			}))
			var log bytes.Buffer
			s := newSender(t, smtpsend.Options{Timeout: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(&log,
				&slog.HandlerOptions{Level: slog.LevelDebug}))})
			e := failure(t, s.Verify(t.Context(), relay))
			if e.Error() != "smtp "+row.says || strings.Contains(e.Line, "secret") {
				t.Errorf("told: %v; line %q", e, e.Line)
			}
			if !strings.Contains(log.String(), "secret") {
				t.Errorf("not in the log: %s", &log)
			}
			relay.OperatorsOwn = true
			if e := failure(t, s.Verify(t.Context(), relay)); !strings.Contains(e.Error(), "secret") {
				t.Errorf("the operator's own relay: %v", e)
			}
		})
	}
}

// A certificate that came before SMTP began is not shown either: it names hosts of another network.
func TestCertificatesOfOtherServersAreNotTold(t *testing.T) {
	web := httptest.NewUnstartedServer(nil)
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	web.StartTLS()
	defer web.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	address := web.Listener.Addr().String()
	for name, relay := range map[string]smtpsend.Relay{
		"relay": {Host: "localhost", Port: at(t, address).Port, TLS: smtpsend.TLSImplicit, CA: ca},
		"proxy": {Host: "relay.test", Proxy: "https://localhost:" + strconv.Itoa(at(t, address).Port), CA: ca},
	} {
		e := failure(t, newSender(t, smtpsend.Options{}).Verify(t.Context(), relay))
		if !strings.HasSuffix(e.Error(), "TLS handshake: the certificate is not valid for this host") {
			t.Errorf("%s: %v", name, e)
		}
		relay.OperatorsOwn = true
		e = failure(t, newSender(t, smtpsend.Options{}).Verify(t.Context(), relay))
		if name == "relay" && !strings.Contains(e.Error(), "example.com") {
			t.Errorf("the operator's own: %v", e)
		}
	}
}
