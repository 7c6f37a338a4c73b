package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// body is the text of every message: 4 KiB, as in a typical notification.
var body = strings.Repeat("All work and no play makes a dull boy. \r\n", 100)

// often is the interval at which conditions are checked.
const often = 2 * time.Millisecond

const sender, recipient = "bench@example.com", "ann@example.net"

// message returns a message to a recipient.
func message(to, text string) []byte {
	return []byte("From: " + sender + "\r\nTo: " + to + "\r\nSubject: bench\r\n\r\n" + text)
}

// relayAt returns the relay at an address, for our SMTP client; connections 0 is its default.
func relayAt(address string, connections int) smtpsend.Relay {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return smtpsend.Relay{Host: host, Port: n, TLS: smtpsend.TLSNone, Connections: connections}
}

// rawRate returns how many messages a second the SMTP client alone sends to a relay; connections 0 is its
// default.
func rawRate(ctx context.Context, address string, connections, n, senders int) (float64, error) {
	s, err := smtpsend.New(smtpsend.Options{})
	if err != nil {
		return 0, err
	}
	defer s.Close() //nolint:errcheck // the measurement is over
	relay, data := relayAt(address, connections), smtpsend.Bytes(message(recipient, body))
	began := time.Now()
	err = rig.InParallel(ctx, n, senders, func(ctx context.Context, _ int) error {
		_, err := s.Send(ctx, relay, smtpsend.Message{From: sender, To: []string{recipient}, Body: data})
		return err
	})
	return float64(n) / time.Since(began).Seconds(), err
}

// throughput returns how many messages a second go from submit over HTTP to the relay.
func (p *postroom) throughput(ctx context.Context, relay *testsmtp.Server, n, senders int) (float64, error) {
	before, began := relay.Count(), time.Now()
	if err := rig.InParallel(ctx, n, senders, p.submitNow); err != nil {
		return 0, err
	}
	if err := rig.Until(ctx, 2*time.Minute, often, func() (bool, error) {
		return relay.Count()-before >= n, nil
	}); err != nil {
		return 0, fmt.Errorf("%d of %d messages arrived: %w", relay.Count()-before, n, err)
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// pickup returns how long a message takes from the submit to the relay on an idle system.
func (p *postroom) pickup(ctx context.Context, sink *testsmtp.Server, n int) (rig.Quantiles, error) {
	if err := p.drained(ctx); err != nil {
		return rig.Quantiles{}, err
	}
	took := make([]time.Duration, n)
	for i := range n {
		before, began := sink.Count(), time.Now()
		if err := p.submitNow(ctx, i); err != nil {
			return rig.Quantiles{}, err
		}
		for sink.Count() == before {
			if time.Since(began) > 10*time.Second {
				return rig.Quantiles{}, fmt.Errorf("message %d did not arrive", i)
			}
			if err := rig.Wait(ctx, 50*time.Microsecond); err != nil {
				return rig.Quantiles{}, err
			}
		}
		took[i] = time.Since(began)
		if err := rig.Wait(ctx, time.Duration(7+i%13)*time.Millisecond); err != nil {
			return rig.Quantiles{}, err
		}
	}
	return rig.QuantilesOf(took), nil
}

// list returns the slowest page of an outbox with n scheduled messages.
func (p *postroom) list(ctx context.Context, n int) (time.Duration, error) {
	later := time.Now().Add(time.Hour)
	if err := rig.InParallel(ctx, n, 50, func(ctx context.Context, i int) error {
		return p.submit(ctx, i, &later)
	}); err != nil {
		return 0, err
	}
	var slowest time.Duration
	for _, page := range []int{0, 1, n / 40, n/20 - 1} {
		began := time.Now()
		got, err := api.ListOutbox.Do(ctx, p.client, api.OutboxQuery{Page: page, PageSize: 20})
		if err != nil {
			return 0, err
		}
		if got.Total != n || len(got.Messages) != 20 {
			return 0, fmt.Errorf("page %d has %d of %d messages, want 20 of %d", page, len(got.Messages), got.Total, n)
		}
		slowest = max(slowest, time.Since(began))
	}
	return rig.Round(slowest), nil
}

func (p *postroom) drained(ctx context.Context) error {
	return rig.Until(ctx, time.Minute, often, func() (bool, error) {
		page, err := api.ListOutbox.Do(ctx, p.client, api.OutboxQuery{})
		return page.Total == 0, err
	})
}

func (p *postroom) submit(ctx context.Context, i int, at *time.Time) error {
	_, err := api.Submit.Do(ctx, p.client, api.SubmitRequest{
		To: api.Addresses{{Address: fmt.Sprintf("ann%d@example.net", i)}}, Subject: "bench", Text: body, SendAt: at,
	})
	return err
}

func (p *postroom) submitNow(ctx context.Context, i int) error { return p.submit(ctx, i, nil) }
