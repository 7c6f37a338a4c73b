package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/faultproxy"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// overALongLine compares SMTP clients where a round trip takes 50 ms, as to a relay on another continent.
// Both keep their connections and send the same messages to the same sink; go-smtp waits for the answer to
// each command, ours sends commands in groups and the next envelope with the dot.
func overALongLine(ctx context.Context) error {
	sink, err := testsmtp.New(testsmtp.Options{Discard: true})
	if err != nil {
		return err
	}
	defer sink.Close()
	line, err := faultproxy.Listen("tcp", sink.Addr())
	if err != nil {
		return err
	}
	defer line.Close()
	line.Delay(25 * time.Millisecond)
	rig.Title("A line with 50 ms of round trip, connections kept")
	sent := 0
	for _, connections := range []int{1, 10} {
		n := 40 * connections
		theirs, err := oneByOneRate(ctx, line.Addr(), n, connections)
		if err != nil {
			return err
		}
		ours, err := chainedRate(ctx, line.Addr(), n, connections)
		if err != nil {
			return err
		}
		if sent += 2 * n; sink.Count() != sent {
			return fmt.Errorf("the sink has %d of %d messages", sink.Count(), sent)
		}
		rig.Tell(fmt.Sprintf("go-smtp, connections: %d", connections), fmt.Sprintf("%.1f messages/s", theirs))
		rig.Tell(fmt.Sprintf("the SMTP client, connections: %d", connections), fmt.Sprintf("%.1f messages/s", ours))
		rig.Row("  ÷ go-smtp", fmt.Sprintf("%.1f", ours/theirs), "at least 3", ours/theirs >= 3)
	}
	return nil
}

const lineFrom, lineTo = "bench@example.com", "ann@example.net"

func lineMessage() string {
	return "From: " + lineFrom + "\r\nTo: " + lineTo + "\r\nSubject: bench\r\n\r\n" + body
}

// oneByOneRate is how many messages a second go-smtp's client sends over so many connections.
func oneByOneRate(ctx context.Context, address string, n, connections int) (float64, error) {
	group, ctx := errgroup.WithContext(ctx)
	message := lineMessage()
	var next atomic.Int64
	began := time.Now()
	for range connections {
		group.Go(func() error {
			c, err := smtp.Dial(address)
			if err != nil {
				return err
			}
			defer c.Close() //nolint:errcheck // the measurement is over
			for int(next.Add(1)) <= n && ctx.Err() == nil {
				if err := oneByOne(c, message); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	return float64(n) / time.Since(began).Seconds(), err
}

func oneByOne(c *smtp.Client, message string) error {
	if err := c.Mail(lineFrom, nil); err != nil {
		return err
	}
	if err := c.Rcpt(lineTo, nil); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, strings.NewReader(message)); err != nil {
		return err
	}
	return w.Close()
}

// chainedRate is how many messages a second our client sends over so many connections, with always somebody
// in line.
func chainedRate(ctx context.Context, address string, n, connections int) (float64, error) {
	s, err := smtpsend.New(smtpsend.Options{})
	if err != nil {
		return 0, err
	}
	defer s.Close() //nolint:errcheck // the measurement is over
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	relay := smtpsend.Relay{Host: host, TLS: smtpsend.TLSNone, Connections: connections}
	if relay.Port, err = strconv.Atoi(port); err != nil {
		return 0, err
	}
	message := []byte(lineMessage())
	began := time.Now()
	err = rig.InParallel(ctx, n, 3*connections, func(ctx context.Context, _ int) error {
		_, err := s.Send(ctx, relay, smtpsend.Message{From: lineFrom, To: []string{lineTo},
			Body: smtpsend.Bytes(message)})
		return err
	})
	return float64(n) / time.Since(began).Seconds(), err
}
