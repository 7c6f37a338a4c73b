package smtpsend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// scripted is a connection whose other side sends fixed bytes, whatever it receives.
type scripted struct {
	says  *bytes.Reader
	heard bytes.Buffer
}

func (s *scripted) Read(b []byte) (int, error)  { return s.says.Read(b) }
func (s *scripted) Write(b []byte) (int, error) { return s.heard.Write(b) }
func (s *scripted) Close() error                { return nil }
func (s *scripted) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
}
func (s *scripted) RemoteAddr() net.Addr             { return s.LocalAddr() }
func (s *scripted) SetDeadline(time.Time) error      { return nil }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }

// FuzzConversation: a relay says anything, from the greeting to the answers to two messages; the second is in
// line behind the first. Each recipient ends with one answer, only a yes to a dot is a delivery, no dot is
// written unasked, and only after one is there doubt.
func FuzzConversation(f *testing.F) {
	hello := "220 mx.test ESMTP\r\n250-mx.test\r\n250-PIPELINING\r\n250-SIZE 100000\r\n250-AUTH PLAIN\r\n250 8BITMIME\r\n235 welcome\r\n"
	for _, seed := range []string{
		hello + "250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 first\r\n250 ok\r\n250 ok\r\n354 go\r\n250 second\r\n",
		hello + "250 ok\r\n550 5.1.1 no\r\n452 4.5.3 full\r\n354 go\r\n250 first\r\n421 bye\r\n",
		hello + "250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n421 bye\r\n",
		hello + "250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n",
		hello + "250 ok\r\n550 no\r\n550 no\r\n354 go\r\n554 no\r\n",
		hello + "250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n554 no\r\n250 ok\r\n550 no\r\n354 go\r\n554 no\r\n",
		"220 mx\r\n502 what\r\n250 mx\r\n",
		"220 mx\r\n250-mx\r\n250 AUTH PLAIN LOGIN\r\n334 \r\n535 no\r\n",
		"220 mx\r\n250-mx\r\n250-PIPELINING\r\n250-LIMITS RCPTMAX=1\r\n250 AUTH=LOGIN\r\n334 dXNlcg==\r\n334 cGFzcw==\r\n235 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n",
		"554 5.7.1 blocked using zen.spamhaus.org\r\n", "HTTP/1.1 400 Bad Request\r\n", "220-mx\r\n221 mx\r\n",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	sender, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, wire []byte, large bool) {
		conn := &scripted{says: bytes.NewReader(wire)}
		relay := sender.complete(Relay{Host: "mx.test", TLS: TLSNone, Username: "user", Password: "secret-password",
			EHLOName: "client.test"})
		c := &session{sender: sender, relay: relay, raw: conn, expires: time.Now().Add(time.Hour)}
		c.attach(conn)
		ctx := context.Background()
		if failure := c.introduce(ctx); failure != nil {
			mustBeWhole(t, failure)
			if strings.Contains(conn.heard.String(), "MAIL") {
				t.Fatal("MAIL in spite of ", failure)
			}
			return
		}
		first := &talk{conn: conn, text: "the first\r\n"}
		if large {
			first.text += strings.Repeat("0123456789\r\n", 5000)
		}
		second := &talk{conn: conn, text: "the second\r\n"}
		one := first.deliver(t, sender, relay, "b@example.org", "c@example.org")
		two := second.deliver(t, sender, relay, "d@example.org")
		sender.pool.relays[relay] = &connections{open: 1}
		sender.pool.relays[relay].join(two)
		defer delete(sender.pool.relays, relay)

		transaction := newTransaction(one, c)
		transaction.run(ctx)
		first.check(t, transaction)
		if next := transaction.follower; next != nil && !c.botched {
			next.t.run(ctx)
			second.check(t, next.t)
		}
		if strings.Contains(conn.heard.String(), "the second") && !second.allowed {
			t.Fatal("the second message went out without its own 354")
		}
	})
}

// talk is one message of FuzzConversation.
type talk struct {
	conn    *scripted
	text    string
	allowed bool // BeforeDot was called
}

func (m *talk) deliver(t *testing.T, s *Sender, relay Relay, to ...string) *delivery {
	d := newDelivery(s, relay, Message{From: "a@example.com", To: to, Body: Bytes(m.text),
		BeforeDot: func(context.Context, []string) error {
			if bytes.HasSuffix(m.conn.heard.Bytes(), endOfData) {
				t.Fatal("the dot is out before it was allowed")
			}
			m.allowed = true
			return nil
		}})
	if failure := d.check(context.Background(), relay); failure != nil {
		t.Fatal(failure)
	}
	return d
}

// check compares the transaction's results with the allowed ones.
func (m *talk) check(t *testing.T, tr *transaction) {
	if tr.stale {
		if m.allowed {
			t.Fatal("stale after the content")
		}
		return
	}
	left := map[int]bool{}
	for _, i := range tr.next {
		left[i] = true
	}
	for _, i := range tr.to {
		r := tr.d.result.Recipients[i]
		switch {
		case left[i] && r.Err != nil:
			t.Fatalf("%s is left for later and has failed: %v", r.Address, r.Err)
		case left[i]:
		case r.Err == nil && (!m.allowed || !strings.HasPrefix(r.Response, "2")):
			t.Fatalf("%s is delivered with %q, dot allowed %v", r.Address, r.Response, m.allowed)
		case r.Err != nil:
			mustBeWhole(t, r.Err)
			if r.Err.InDoubt && !m.allowed {
				t.Fatal("in doubt without a dot: ", r.Err)
			}
		}
	}
}

// mustBeWhole checks what every error promises.
func mustBeWhole(t *testing.T, e *Error) {
	if e.Verdict == "" || e.Scope == "" || e.Phase == "" || e.Name() == "" || e.Error() == "" {
		t.Fatalf("%+v", e)
	}
	if e.Suppress && e.Verdict != Hard || e.InDoubt && (e.Phase != PhaseDot || e.Permanent() || e.Elsewhere()) {
		t.Fatalf("%+v", e)
	}
	if len(e.Line) > maxLineShown {
		t.Fatalf("a line of %d bytes", len(e.Line))
	}
}

// FuzzProxy: whatever a proxy says, what is read of it is bounded, the first byte of the relay stays where it
// is, and no secret comes back.
func FuzzProxy(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\n\r\n220 mx\r\n", "HTTP/1.0 200\n\n220 mx\r\n",
		"HTTP/1.1 407 Proxy Authentication Required\r\nA: b\r\n\r\n",
		"HTTP/1.1 503 no secret-password\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b", "220 mx ESMTP\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n", "\r\n\r\n",
	} {
		f.Add(false, []byte(seed))
	}
	for _, seed := range []string{
		"\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x19220 mx\r\n",
		"\x05\x02\x01\x00\x05\x00\x00\x03\x02mx\x00\x19220 mx\r\n",
		"\x05\x02\x01\x01", "\x05\xff", "\x05\x00\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00",
		"\x05\x00\x05\x00\x00\x04", "\x04\x00",
	} {
		f.Add(true, []byte(seed))
	}
	p := &proxy{user: "proxy-user", password: "secret-password"}
	f.Fuzz(func(t *testing.T, socks bool, wire []byte) {
		conn := &scripted{says: bytes.NewReader(wire)}
		ask := p.askHTTP
		if socks {
			ask = p.askSOCKS
		}
		err := ask(conn, "mx.test", 25)
		read := wire[:len(wire)-conn.says.Len()]
		if len(read) > maxProxyHead {
			t.Fatalf("%d bytes were read", len(read))
		}
		switch {
		case err != nil && (strings.Contains(err.Error(), "secret-password") || len(err.Error()) > 400):
			t.Fatalf("error: %q", err)
		case err != nil && !errors.Is(err, io.EOF) && len(read) == 0:
			t.Fatalf("%v before a word was read", err)
		case err == nil && socks && (len(read) < 9 || read[0] != 5):
			t.Fatalf("a tunnel by %q", read)
		case err == nil && !socks && (!strings.HasPrefix(string(read), "HTTP/") ||
			!bytes.HasSuffix(read, []byte("\n")) ||
			bytes.Contains(bytes.ReplaceAll(read, []byte("\r"),
				nil)[:len(bytes.ReplaceAll(read, []byte("\r"), nil))-2], []byte("\n\n"))):
			t.Fatalf("a tunnel by %q", read)
		}
	})
}
