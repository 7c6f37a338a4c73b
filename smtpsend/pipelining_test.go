package smtpsend_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// loser is a relay that offers PIPELINING, answers so many commands of a group, and drops the others or
// closes the connection. It returns its address.
func loser(t *testing.T, answers int, closes bool) *net.TCPAddr {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		in := bufio.NewReader(conn)
		say := func(s string) { _, _ = fmt.Fprintf(conn, "%s\r\n", s) }
		say("220 loser.test")
		for left := answers; ; left-- {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if in.Buffered() == 0 {
				left = answers
			} else if left <= 1 {
				if closes {
					return
				}
				_, _ = in.Discard(in.Buffered())
			}
			switch verb, _, _ := strings.Cut(strings.TrimSpace(strings.ToUpper(line)), " "); verb {
			case "EHLO":
				say("250-loser.test\r\n250 PIPELINING")
			case "DATA":
				say("354 go ahead")
				for line != ".\r\n" {
					if line, err = in.ReadString('\n'); err != nil {
						return
					}
				}
				say("250 taken")
			default:
				say("250 ok")
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().(*net.TCPAddr)
}

// TestARelayThatLosesPipelinedCommandsGetsItsMail: at the second attempt, and all mail after it at the first.
// RFC 2920 section 3.1 forbids a server to lose them; some do.
func TestARelayThatLosesPipelinedCommandsGetsItsMail(t *testing.T) {
	t.Parallel()
	var many []string
	for n := range 150 { // more than one window
		many = append(many, fmt.Sprintf("p%d@example.org", n))
	}
	for _, row := range []struct {
		name    string
		answers int
		closes  bool
		to      []string
	}{
		{"one command is answered", 1, false, many[:1]},
		{"two are answered", 2, false, many[:1]},
		{"it closes the connection", 1, true, many[:1]},
		{"many recipients", 1, false, many},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			at := loser(t, row.answers, row.closes)
			var log bytes.Buffer
			sender := newSender(t, smtpsend.Options{Timeout: 5 * time.Second,
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			relay := smtpsend.Relay{Host: at.IP.String(), Port: at.Port}
			for n := range 3 {
				result, _ := sender.Send(t.Context(), relay, mail(row.to...))
				for _, r := range result.Recipients {
					if n > 0 && r.Err != nil {
						t.Fatalf("attempt %d, %s: %v", n+1, r.Address, r.Err)
					}
				}
			}
			if n := strings.Count(log.String(), "lost pipelined commands"); n != 1 {
				t.Errorf("the log has it %d times", n)
			}
		})
	}
}

// TestARelayThatEndsIdleConnectionsKeepsPipelining: that doesn't count as a loss of commands.
func TestARelayThatEndsIdleConnectionsKeepsPipelining(t *testing.T) {
	t.Parallel()
	server := testsmtp.Start(t, testsmtp.Options{})
	var log bytes.Buffer
	sender := newSender(t, smtpsend.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		if _, err := sender.Send(t.Context(), relayTo(server), mail("b@example.org")); err != nil {
			t.Fatal(err)
		}
		server.CutAll()
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}
