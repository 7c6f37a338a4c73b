package smtpsend_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// TestChainCancelled: who gives up with his envelope on its way gets no mail sent, and costs the message
// before and those after him nothing but a connection.
func TestChainCancelled(t *testing.T) {
	dotReached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "DOT" {
			once.Do(func() { close(dotReached); <-goOn })
		}
		return testsmtp.Action{}
	}})
	sender := newSender(t, smtpsend.Options{})
	relay := relayTo(server)
	relay.Connections = 1
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	m := mail("first@example.org")
	m.BeforeDot = func(context.Context, []string) error {
		go func() {
			_, err := sender.Send(ctx, relay, mail("second@example.org"))
			second <- err
		}()
		eventually(t, "the second is in line", func() bool { return sender.InLine() == 1 })
		return nil
	}
	first := make(chan error, 1)
	go func() {
		_, err := sender.Send(t.Context(), relay, m)
		first <- err
	}()
	<-dotReached
	if sender.InLine() != 0 {
		t.Error("the second was not taken along")
	}
	cancel()
	if e := failure(t, <-second); !errors.Is(e, context.Canceled) || e.InDoubt ||
		e.Phase != smtpsend.PhaseConnect {
		t.Errorf("second: %v", e)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Errorf("first: %v", err)
	}
	if _, err := sender.Send(t.Context(), relay, mail("third@example.org")); err != nil {
		t.Errorf("third: %v", err)
	}
	for i, m := range server.Wait(2) {
		if want := []string{"first@example.org", "third@example.org"}[i]; m.To[0] != want {
			t.Errorf("message %d is for %s, want %s", i, m.To[0], want)
		}
	}
	if server.Connections() != 2 {
		t.Errorf("%d connections, want the one with the envelope of nobody closed", server.Connections())
	}
}

// TestChainIsOneWrite: a small content, its dot and the envelope that follows leave together, and nothing of
// them before BeforeDot has returned.
func TestChainIsOneWrite(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	withDot, recorded := make(chan string, 1), atomic.Bool{}
	go func() {
		defer close(withDot)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buf := make([]byte, 64<<10)
		got := ""
		for _, reply := range []string{"220 mx\r\n", "250-mx\r\n250 PIPELINING\r\n",
			"250 ok\r\n250 ok\r\n354 go\r\n"} {
			_, _ = conn.Write([]byte(reply))
			n, _ := conn.Read(buf)
			if strings.HasSuffix(reply, "354 go\r\n") && !recorded.Load() {
				t.Errorf("%q came before BeforeDot returned", buf[:n])
			}
			got = string(buf[:n])
		}
		withDot <- got
	}()
	sender := newSender(t, smtpsend.Options{Timeout: time.Minute})
	relay := smtpsend.Relay{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, Connections: 1}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	m := mail("b@example.org")
	m.BeforeDot = func(context.Context, []string) error {
		group.Go(func() { _, _ = sender.Send(ctx, relay, mail("c@example.org")) })
		eventually(t, "the second is in line", func() bool { return sender.InLine() == 1 })
		recorded.Store(true)
		return nil
	}
	_, _ = sender.Send(t.Context(), relay, m)
	cancel()
	group.Wait()
	if got, want := <-withDot, "Subject: hello\r\n\r\nworld\r\n.\r\n"+
		"MAIL FROM:<a@example.com>\r\nRCPT TO:<c@example.org>\r\nDATA\r\n"; got != want {
		t.Errorf("at once came %q, want %q", got, want)
	}
}

// TestADotThatNeverLeftIsNoDoubt: a relay that hangs up before the content is written can't have delivered it
// (RFC 5321 section 4.1.1.4: the mail data ends with the dot).
func TestADotThatNeverLeftIsNoDoubt(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		buf := make([]byte, 64<<10)
		for _, reply := range []string{"220 mx\r\n", "250-mx\r\n250 PIPELINING\r\n"} {
			_, _ = conn.Write([]byte(reply))
			_, _ = conn.Read(buf)
		}
		_, _ = conn.Write([]byte("250 ok\r\n250 ok\r\n354 go\r\n"))
		_ = conn.(*net.TCPConn).SetLinger(0) // the connection is reset
		_ = conn.Close()
	}()
	sender := newSender(t, smtpsend.Options{Timeout: time.Minute})
	m := mail("b@example.org")
	m.BeforeDot = func(context.Context, []string) error {
		<-gone
		// A busy machine delivers the reset later than Close returns. Another connection comes after it.
		after, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			err = after.Close()
		}
		return err
	}
	_, err = sender.Send(t.Context(), smtpsend.Relay{Host: "127.0.0.1",
		Port: listener.Addr().(*net.TCPAddr).Port, Connections: 1}, m)
	if se, ok := errors.AsType[*smtpsend.Error](err); !ok || se.InDoubt || se.Permanent() {
		t.Errorf("%+v, want an error that passes and is not in doubt", err)
	}
}

// TestChainLosesAndDoublesNothing sends through a relay that breaks off wherever it can, for senders some of
// whom give up, and counts copies.
func TestChainLosesAndDoublesNothing(t *testing.T) {
	var commands atomic.Int64
	server := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		n := commands.Add(1)
		switch {
		case c.Verb == "DOT" && n%11 == 0:
			return testsmtp.Action{Store: true, Close: true}
		case c.Verb == "DOT" && n%13 == 0:
			return testsmtp.Action{Reply: "421 4.3.2 Shutting down", Close: true}
		case c.Verb == "DOT" && n%5 == 0:
			return testsmtp.Action{Reply: "451 4.3.0 Later"}
		case c.Verb == "DOT" && n%17 == 0:
			return testsmtp.Action{Reset: true}
		case c.Verb == "MAIL" && n%19 == 0:
			return testsmtp.Action{Reply: "421 4.7.0 Idle too long", Close: true}
		case c.Verb == "MAIL" && n%23 == 0, c.Verb == "DATA" && n%29 == 0:
			return testsmtp.Action{Close: true}
		case c.Verb == "RCPT" && n%7 == 0:
			return testsmtp.Action{Reply: "450 4.2.0 Later"}
		}
		return testsmtp.Action{}
	}})
	sender := newSender(t, smtpsend.Options{Timeout: 20 * time.Second})
	relay := relayTo(server)
	relay.Connections, relay.MessagesPerConnection = 3, 20
	const senders, each = 16, 40
	outcomes := make([]error, senders*each)
	var group sync.WaitGroup
	for s := range senders {
		group.Go(func() {
			for i := s * each; i < (s+1)*each; i++ {
				ctx, cancel := t.Context(), func() {}
				if i%8 == 0 { // somebody who does not wait for long, in line or wherever it finds him
					ctx, cancel = context.WithTimeout(ctx, time.Duration(i%64)*time.Millisecond/4)
				}
				_, outcomes[i] = sender.Send(ctx, relay, mail(fmt.Sprintf("user%d@example.org", i)))
				cancel()
			}
		})
	}
	group.Wait()
	copies := map[string]int{}
	for _, m := range server.Messages() {
		copies[m.To[0]]++
	}
	var delivered, doubtful, failed int
	for i, err := range outcomes {
		n := copies[fmt.Sprintf("user%d@example.org", i)]
		switch {
		case err == nil:
			delivered++
			if n != 1 {
				t.Errorf("message %d: delivered, and %d copies", i, n)
			}
		case failure(t, err).InDoubt:
			doubtful++
			if n > 1 {
				t.Errorf("message %d: in doubt, and %d copies", i, n)
			}
		default:
			failed++
			if n != 0 {
				t.Errorf("message %d: %d copies in spite of %v", i, n, err)
			}
		}
	}
	t.Logf("%d delivered, %d in doubt, %d failed, over %d connections", delivered, doubtful, failed,
		server.Connections())
	if delivered == 0 || doubtful == 0 || failed == 0 {
		t.Error("the relay was not unreliable enough to show anything")
	}
	if sender.InLine() != 0 || sender.InUse() != 0 {
		t.Errorf("%d messages are in line and %d connections in use, with nobody there", sender.InLine(),
			sender.InUse())
	}
}

// TestNoDotWhenItsTimeIsOver: AtDot says no after BeforeDot has said yes. Nothing is delivered and nothing in
// doubt, and the message whose envelope was to go along with the dot finds its own way.
func TestNoDotWhenItsTimeIsOver(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{})
	sender := newSender(t, smtpsend.Options{})
	relay := relayTo(server)
	relay.Connections = 1
	second := make(chan error, 1)
	m := mail("first@example.org")
	m.BeforeDot = func(context.Context, []string) error {
		go func() {
			_, err := sender.Send(t.Context(), relay, mail("second@example.org"))
			second <- err
		}()
		eventually(t, "the second is in line", func() bool { return sender.InLine() == 1 })
		return nil
	}
	late := errors.New("too late")
	m.AtDot = func() error { return late }
	_, err := sender.Send(t.Context(), relay, m)
	if e := failure(t, err); !errors.Is(e, late) || e.InDoubt || e.Permanent() || e.Phase != smtpsend.PhaseBody {
		t.Errorf("first: %v, in doubt %t", e, e.InDoubt)
	}
	if err := <-second; err != nil {
		t.Errorf("second: %v", err)
	}
	if got := server.Wait(1); len(got) != 1 || got[0].To[0] != "second@example.org" {
		t.Errorf("delivered: %v", got)
	}
}
