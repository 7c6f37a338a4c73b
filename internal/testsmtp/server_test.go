package testsmtp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/smtp"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/postroom/postroom/internal/testsmtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// send uses the standard library's client, which is nobody's here.
func send(s *testsmtp.Server, auth smtp.Auth, to ...string) error {
	c, err := smtp.Dial(s.Addr())
	if err != nil {
		return err
	}
	defer c.Close()
	if ok, _ := c.Extension("STARTTLS"); ok {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(s.CA()))
		if err := c.StartTLS(&tls.Config{ServerName: "localhost", RootCAs: pool}); err != nil {
			return err
		}
	}
	if auth != nil {
		if err := c.Auth(auth); err != nil {
			return err
		}
	}
	if err := c.Mail("a@example.com"); err != nil {
		return err
	}
	for _, rcpt := range to {
		if err := c.Rcpt(rcpt); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, "Subject: x\r\n\r\n.dot\r\n"); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return c.Quit()
}

// TestWhatIsCountedIsKept: whoever saw the count of messages finds as many.
func TestWhatIsCountedIsKept(t *testing.T) {
	const messages = 200
	s := testsmtp.Start(t, testsmtp.Options{})
	sent := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < messages && err == nil; i++ {
			err = send(s, nil, "b@example.org")
		}
		sent <- err
	}()
	for {
		seen := s.Count()
		if kept := len(s.Messages()); kept < seen {
			t.Fatalf("%d messages counted, %d kept", seen, kept)
		}
		select {
		case err := <-sent:
			if n := s.Count(); err != nil || n != messages {
				t.Fatalf("%d messages were taken: %v", n, err)
			}
			return
		default:
		}
	}
}

// said is an error as the server worded it; net/smtp's own text quotes it.
func said(err error) string {
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Sprintf("%d %s", reply.Code, reply.Msg)
	}
	return fmt.Sprint(err)
}

func TestServerKeepsWhatItAccepts(t *testing.T) {
	s := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.STARTTLS, Username: "u", Password: "p",
		Record: true})
	if err := send(s, smtp.PlainAuth("", "u", "p", "127.0.0.1"), "b@example.org", "c@example.org"); err != nil {
		t.Fatal(err)
	}
	got := s.Wait(1)[0]
	got.Time = time.Time{}
	want := testsmtp.Message{From: "a@example.com", To: []string{"b@example.org", "c@example.org"},
		Data: []byte("Subject: x\r\n\r\n.dot\r\n"), Login: "u", TLS: true, Connection: got.Connection}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if commands := strings.Join(s.Commands(), "\n"); !strings.Contains(commands, "RCPT TO:<c@example.org>") {
		t.Error(commands)
	}
	if err := send(s, smtp.PlainAuth("", "u", "wrong", "127.0.0.1"), "b@example.org"); err == nil ||
		!strings.HasPrefix(err.Error(), "535") {
		t.Errorf("wrong password: %v", err)
	}
	if err := send(s, nil, "b@example.org"); err == nil || !strings.HasPrefix(err.Error(), "530") {
		t.Errorf("no login: %v", err)
	}
	s.Forget()
	if len(s.Messages()) != 0 || s.Count() != 1 {
		t.Errorf("%d kept, %d counted", len(s.Messages()), s.Count())
	}
}

func TestAddressesSpeakForThemselves(t *testing.T) {
	s := testsmtp.Start(t, testsmtp.Options{MaxRecipients: 2})
	for _, row := range []struct {
		to     []string
		fails  string // beginning of the error; empty if none
		stored bool
	}{
		{[]string{"b@example.org"}, "", true},
		{[]string{"rcpt-550@example.org"}, "550 5.1.1", false},
		{[]string{"rcpt-599+x@example.org"}, "599 5.0.0", false},
		{[]string{"data-451@example.org"}, "451 4.3.0", false},
		{[]string{"b@example.org", "dot-554@example.org"}, "554 5.7.1", false},
		{[]string{"dot-close@example.org"}, "EOF", true},
		{[]string{"rcpt-close@example.org"}, "EOF", false},
		{[]string{"dot-slow@example.org"}, "", true},
		{[]string{"dot-451-2@example.org"}, "451", false},
		{[]string{"dot-451-2@example.org"}, "451", false},
		{[]string{"dot-451-2@example.org"}, "", true},
		{[]string{"b@example.org", "c@example.org", "d@example.org"}, "452 4.5.3", false},
	} {
		before := s.Count()
		err := send(s, nil, row.to...)
		if (err == nil) != (row.fails == "") || err != nil && !strings.HasPrefix(said(err), row.fails) {
			t.Errorf("%v: %v, want %q", row.to, err, row.fails)
		}
		if stored := s.Count() > before; stored != row.stored {
			t.Errorf("%v: stored %v", row.to, stored)
		}
	}
}

func TestRespondDecides(t *testing.T) {
	s := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		switch {
		case c.Verb == "DOT" && strings.Contains(string(c.Data), ".dot") && c.From == "a@example.com" &&
			len(c.To) == 1:
			return testsmtp.Action{Reply: "550 5.7.1 first line\n550 5.7.1 second line"}
		case c.Verb == "QUIT":
			return testsmtp.Action{Reset: true}
		}
		return testsmtp.Action{}
	}})
	if err := send(s, nil, "b@example.org"); err == nil ||
		said(err) != "550 5.7.1 first line\n5.7.1 second line" {
		t.Error(err)
	}
	if err := send(s, nil, "b@example.org", "c@example.org"); err == nil ||
		!strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	if s.Count() != 1 {
		t.Errorf("%d messages", s.Count())
	}
}

func TestWaitGivesUpWithTheContext(t *testing.T) {
	s, err := testsmtp.New(testsmtp.Options{Discard: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.WaitContext(ctx, 1); err == nil {
		t.Error("nothing came, and nobody minded")
	}
	if !strings.HasPrefix(s.URL(), "smtp://127.0.0.1:") {
		t.Error(s.URL())
	}
}

func TestCloseEndsHangingConnections(t *testing.T) {
	s := testsmtp.Start(t, testsmtp.Options{Respond: func(testsmtp.Command) testsmtp.Action {
		return testsmtp.Action{Hang: true}
	}})
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for deadline := time.Now().Add(30 * time.Second); s.Open() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection was never taken")
		}
	}
	s.Close()
	if s.Open() != 0 {
		t.Error("a connection is still open")
	}
}

// TestCloseCutsWhoJustCame: a connection that is taken while the server closes is cut like any other, and not
// served until its client leaves.
func TestCloseCutsWhoJustCame(t *testing.T) {
	for range 300 {
		s, err := testsmtp.New(testsmtp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		go func() { s.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(30 * time.Second):
			_ = conn.Close()
			<-closed
			t.Fatal("the server waited for its client to leave")
		}
		_ = conn.Close()
	}
}
