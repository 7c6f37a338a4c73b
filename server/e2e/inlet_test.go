package e2e_test

import (
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// startInlet runs Postroom with an SMTP inlet, with STARTTLS and implicit TLS, and an account that the
// default token may send as.
func startInlet(t *testing.T, set map[string]string) (a *app.App, relay *testsmtp.Server, ca string) {
	t.Helper()
	relay = testsmtp.Start(t, testsmtp.Options{})
	files := testkit.NewCertificate(t)
	files.Issue(t, "inlet")
	set["smtp"], set["from"] = relay.URL(), "Shop <shop@example.com>"
	set["smtpd.listen"], set["smtpd.listenTls"] = "127.0.0.1:0", "127.0.0.1:0"
	set["smtpd.tls.cert"], set["smtpd.tls.key"] = files.Cert, files.Key
	return apptest.Run(t, set), relay, files.Cert
}

// TestSwaksHandsMailIn sends a message with an attachment by every method of the inlet. swaks is the tool
// that mail administrators use.
func TestSwaksHandsMailIn(t *testing.T) {
	t.Parallel()
	a, relay, ca := startInlet(t, map[string]string{})
	attachment := filepath.Join(t.TempDir(), "numbers.csv")
	if err := os.WriteFile(attachment, []byte("a;b\n1;2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ways := []struct {
		name, address string
		flags         []string
	}{
		{"STARTTLS", a.Addrs().SMTP, []string{"--tls", "--tls-verify", "--tls-ca-path", ca, "--auth", "PLAIN"}},
		{"implicit TLS", a.Addrs().SMTPS, []string{"--tls-on-connect", "--tls-verify", "--tls-ca-path", ca,
			"--auth", "LOGIN"}},
		{"in the clear, from this machine", a.Addrs().SMTP, []string{"--auth", "LOGIN"}},
		{"in one go", a.Addrs().SMTP, []string{"--auth", "PLAIN", "--pipeline"}},
	}
	handed := 0 // so that a method that fails does not make the next one wait
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			out := runProgram(t, "swaks", append([]string{
				"--server", way.address, "--ehlo", "app.example.com", "--auth-user", "default", "--auth-password",
				a.Token(),
				"--from", "shop@example.com", "--to", "ann@example.net,bob@example.net", "--header",
				"Subject: " + way.name,
				"--add-header", "X-EE-Delivery-Attempts: 3", "--body", "Hello\n.\n..dots", "--attach", "@" + attachment,
			}, way.flags...)...)
			if !strings.Contains(out, "250 2.0.0 Ok: queued as ") {
				t.Fatalf("swaks had no message queued:\n%s", out)
			}
			handed++
			mail := relay.Wait(handed)[handed-1]
			if diff := cmp.Diff([]string{"ann@example.net", "bob@example.net"}, mail.To); diff != "" {
				t.Error(diff)
			}
			content := string(mail.Data)
			for _, want := range []string{"Subject: " + way.name, "numbers.csv", "\r\n.\r\n..dots"} {
				if !strings.Contains(content, want) {
					t.Errorf("the relay got no %q in:\n%s", want, content)
				}
			}
			if strings.Contains(content, "X-EE-") {
				t.Error("a control header reached the relay")
			}
		})
	}
}

// sendWithPython is a small application that sends mail.
const sendWithPython = `
import smtplib, ssl, sys
from email.message import EmailMessage
host, port, ca, token = sys.argv[1:]
m = EmailMessage()
m['Subject'], m['From'], m['To'], m['Bcc'] = 'Grüße', 'shop@example.com', 'ann@example.net', 'hidden@example.net'
m['X-Postroom-Idempotency-Key'] = 'order-1'
m['Message-ID'] = '<order-1@example.com>'
m.set_content('Hallo Jörg\n')
m.add_attachment(bytes(range(256)) * 40, maintype='application', subtype='octet-stream', filename='ö.bin')
with smtplib.SMTP(host, int(port)) as s:
    s.starttls(context=ssl.create_default_context(cafile=ca))
    s.login('', token)
    s.send_message(m, mail_options=['RET=HDRS'], rcpt_options=['NOTIFY=FAILURE'])
    try:
        s.sendmail('shop@example.com', ['broken'], b'x')
    except smtplib.SMTPRecipientsRefused as e:
        print(e.recipients['broken'][0])
`

// TestPythonHandsMailIn submits with the SMTP client of Python's standard library.
func TestPythonHandsMailIn(t *testing.T) {
	t.Parallel()
	a, relay, ca := startInlet(t, map[string]string{})
	host, port, _ := net.SplitHostPort(a.Addrs().SMTP)
	if out := runProgram(t, "python3", "-c", sendWithPython, strings.ReplaceAll(host, "127.0.0.1", "localhost"),
		port, ca, a.Token()); strings.TrimSpace(out) != "553" {
		t.Errorf("python says %q", out)
	}
	mail := relay.Wait(1)[0]
	if diff := cmp.Diff([]string{"ann@example.net", "hidden@example.net"}, mail.To); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(mail.Data), "hidden@") || strings.Contains(string(mail.Data), "Idempotency") {
		t.Errorf("the relay got what is not to be seen:\n%s", mail.Data)
	}
}

// TestRepeatedOverSMTP: the same bytes under one key are one message, over any protocol.
func TestRepeatedOverSMTP(t *testing.T) {
	t.Parallel()
	a, relay, _ := startInlet(t, map[string]string{})
	s := logIn(t, a)
	mail := "From: shop@example.com\r\nTo: ann@example.net\r\nMessage-ID: <1@example.com>\r\nX-EE-Idempotency-Key: k1\r\n\r\nHello\r\n"
	first := s.hand(t, mail, 250)
	if again := s.hand(t, mail, 250); again != first {
		t.Errorf("again: %q, first: %q", again, first)
	}
	if got := s.hand(t, mail+"and more\r\n", 550); !strings.Contains(got, "5.5.0") {
		t.Errorf("another message under the key: %q", got)
	}
	if got := s.hand(t, "X-EE-Gateway: nowhere\r\n"+mail, 550); !strings.Contains(got, "5.5.") {
		t.Errorf("an unknown gateway: %q", got)
	}
	if got := s.hand(t, "X-EE-Send-At: soon\r\n"+mail, 550); !strings.Contains(got, "5.6.0") ||
		!strings.Contains(got, "Send-At") {
		t.Errorf("a wrong time: %q", got)
	}
	if got := s.hand(t, "X-EE-Send-At: 2099-01-01T00:00:00Z\r\n"+mail, 550); !strings.Contains(got, "5.6.0") ||
		!strings.Contains(got, "sendAt must not be after") {
		t.Errorf("a time too far ahead: %q", got)
	}
	at := time.Now().Add(300 * 24 * time.Hour).UTC().Truncate(time.Second)
	later := s.hand(t, "X-EE-Send-At: "+at.Format(time.RFC3339)+
		"\r\nX-Postroom-Delivery-Attempts: 3\r\n\r\nHello\r\n", 250)
	_, id, _ := strings.Cut(later, "queued as ")
	m, err := api.GetMessage.Do(t.Context(), api.NewClient(a.URL(), a.Token(), nil), id)
	if err != nil || m.Source != "smtp" || m.Account != "default" || m.Attempts != 3 ||
		!m.Scheduled.Equal(at) {
		t.Errorf("the scheduled message is %+v (%v)", m, err)
	}
	relay.Wait(1)
	if n := relay.Count(); n != 1 {
		t.Errorf("the relay got %d messages", n)
	}
}

// TestRedisKilledUnderTheInlet: mail that can't be made durable gets 451, and is accepted on a retry.
func TestRedisKilledUnderTheInlet(t *testing.T) {
	t.Parallel()
	redis := testredis.Server(t)
	a, relay, _ := startInlet(t, map[string]string{"redis.url": redis.URL()})
	s := logIn(t, a)
	s.hand(t, "Subject: before\r\n\r\nHello\r\n", 250)
	relay.Wait(1)
	redis.Kill()
	if got := s.hand(t, "Subject: while\r\n\r\nHello\r\n", 451); !strings.Contains(got, "4.3.0") {
		t.Errorf("while Redis is away: %q", got)
	}
	redis.Restart(t)
	apptest.Eventually(t, "the message is taken", func() bool {
		code, _ := s.try(t, "Subject: after\r\n\r\nHello\r\n")
		return code == 250
	})
	relay.Wait(2)
}

// TestNoInletUnlessAsked: nothing listens for SMTP by default, nor in a process that only delivers.
func TestNoInletUnlessAsked(t *testing.T) {
	t.Parallel()
	a := apptest.Run(t, map[string]string{})
	if got := a.Addrs().SMTP + a.Addrs().SMTPS; got != "" {
		t.Errorf("an inlet listens on %s", got)
	}
}

// smtpClient is a logged-in SMTP session with an inlet.
type smtpClient struct{ *textproto.Conn }

func logIn(t *testing.T, a *app.App) smtpClient {
	t.Helper()
	conn, err := net.Dial("tcp", a.Addrs().SMTP)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	s := smtpClient{textproto.NewConn(conn)}
	t.Cleanup(func() { s.Close() })
	s.want(t, "", 220)
	s.want(t, "EHLO app.example.com", 250)
	s.want(t, "AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00\x00"+a.Token())), 235)
	return s
}

func (s smtpClient) want(t *testing.T, line string, code int) string {
	t.Helper()
	if line != "" {
		if err := s.PrintfLine("%s", line); err != nil {
			t.Fatal(err)
		}
	}
	_, text, err := s.ReadResponse(code)
	if err != nil {
		t.Fatalf("%.20q: %v", line, err)
	}
	return text
}

// hand submits a message, checks the code of the last reply and returns that reply.
func (s smtpClient) hand(t *testing.T, mail string, code int) string {
	t.Helper()
	got, text := s.try(t, mail)
	if got != code {
		t.Fatalf("the message was answered %d %s, want %d", got, text, code)
	}
	return text
}

func (s smtpClient) try(t *testing.T, mail string) (code int, text string) {
	t.Helper()
	s.want(t, "MAIL FROM:<shop@example.com>", 250)
	s.want(t, "RCPT TO:<ann@example.net>", 250)
	s.want(t, "DATA", 354)
	if _, err := io.WriteString(s.W, mail+".\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := s.W.Flush(); err != nil {
		t.Fatal(err)
	}
	code, text, err := s.ReadResponse(0)
	if err != nil {
		t.Fatal(err)
	}
	return code, text
}

// runProgram runs a program and returns its output.
func runProgram(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}
