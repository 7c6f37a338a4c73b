package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testproxy"
	"github.com/postroom/postroom/internal/testsmtp"
)

// overALongLine compares SMTP clients with a round trip of 50 ms, as to a relay on another continent. Both
// keep their connections and send the same messages to the same sink. go-smtp waits for the reply to each
// command; ours sends commands in groups, and the next envelope with the dot.
func overALongLine(ctx context.Context) error {
	sink, err := testsmtp.New(testsmtp.Options{Discard: true})
	if err != nil {
		return err
	}
	defer sink.Close()
	line, err := testproxy.Listen("tcp", sink.Addr())
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
		ours, err := rawRate(ctx, line.Addr(), connections, n, 3*connections) // always some wait for a connection
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

// oneByOneRate returns how many messages a second go-smtp's client sends over these connections.
func oneByOneRate(ctx context.Context, address string, n, connections int) (float64, error) {
	group, ctx := errgroup.WithContext(ctx)
	data := message(recipient, body)
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
				if err := oneByOne(c, data); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := group.Wait()
	return float64(n) / time.Since(began).Seconds(), err
}

func oneByOne(c *smtp.Client, data []byte) error {
	if err := c.Mail(sender, nil); err != nil {
		return err
	}
	if err := c.Rcpt(recipient, nil); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}
