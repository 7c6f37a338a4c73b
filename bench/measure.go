package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// body is the text of every message: 4 KiB, as in a typical notification.
var body = strings.Repeat("All work and no play makes a dull boy. \r\n", 100)

func client() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200, MaxConnsPerHost: 200},
		Timeout: 30 * time.Second}
}

// often is how often is looked whether something has come about.
const often = 2 * time.Millisecond

// quantiles of a series of durations.
type quantiles struct{ p50, p99 time.Duration }

func (q quantiles) String() string { return fmt.Sprintf("%s / %s", q.p50, q.p99) }

func quantilesOf(d []time.Duration) quantiles {
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[int(q*float64(len(d)-1))].Round(10 * time.Microsecond) }
	return quantiles{at(0.5), at(0.99)}
}

// rawRate is how many messages a second the SMTP client alone hands to the sink.
func rawRate(ctx context.Context, sink *testsmtp.Server, n, senders int) (float64, error) {
	s, err := smtpsend.New(smtpsend.Options{})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	relay := smtpsend.Relay{Host: sink.Host(), Port: sink.Port(), TLS: smtpsend.TLSNone}
	data := []byte("From: bench@example.com\r\nTo: ann@example.net\r\nSubject: bench\r\n\r\n" + body)
	began := time.Now()
	err = rig.InParallel(ctx, n, senders, func(ctx context.Context, _ int) error {
		_, err := s.Send(ctx, relay, smtpsend.Message{From: "bench@example.com", To: []string{"ann@example.net"},
			Body: smtpsend.Bytes(data)})
		return err
	})
	return float64(n) / time.Since(began).Seconds(), err
}

// handOver is how many messages a second go over HTTP and on to the sink with nothing between: a server that
// decodes the request, hands its text to the SMTP client, and answers. It writes nothing down and composes
// nothing; it is what two protocols cost on this machine.
func handOver(ctx context.Context, sink *testsmtp.Server, n, senders int) (float64, error) {
	s, err := smtpsend.New(smtpsend.Options{})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	relay := smtpsend.Relay{Host: sink.Host(), Port: sink.Port(), TLS: smtpsend.TLSNone}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req api.SubmitRequest
		err := json.NewDecoder(r.Body).Decode(&req)
		if err == nil {
			data := []byte("From: bench@example.com\r\nTo: " + req.To[0].Address + "\r\nSubject: bench\r\n\r\n" +
				req.Text)
			_, err = s.Send(r.Context(), relay, smtpsend.Message{From: "bench@example.com",
				To: []string{req.To[0].Address}, Body: smtpsend.Bytes(data)})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(`{"queueId":"none"}`)) // a client that is gone is told of it by its own connection
	}))
	defer server.Close()
	r := &room{client: api.NewClient(server.URL, "", client())}
	began := time.Now()
	err = rig.InParallel(ctx, n, senders, func(ctx context.Context, i int) error {
		return r.submit(ctx, i, nil)
	})
	return float64(n) / time.Since(began).Seconds(), err
}

// throughput is how many messages a second go from submit over HTTP to the relay, all of them delivered.
func (r *room) throughput(ctx context.Context, relay *testsmtp.Server, n, senders int) (float64, error) {
	before, began := relay.Count(), time.Now()
	err := rig.InParallel(ctx, n, senders, func(ctx context.Context, i int) error {
		return r.submit(ctx, i, nil)
	})
	if err != nil {
		return 0, err
	}
	if err := rig.Until(ctx, 2*time.Minute, often, func() (bool, error) {
		return relay.Count()-before >= n,
			nil
	}); err != nil {
		return 0, fmt.Errorf("%d of %d messages arrived: %w", relay.Count()-before, n, err)
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// cpuTime is the CPU time this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// accept is how long a submit takes at a steady rate.
func (r *room) accept(ctx context.Context, rate int, length time.Duration) (quantiles, error) {
	n := rate * int(length.Seconds())
	took := make([]time.Duration, n)
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range n {
		at := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if err := wait(ctx, time.Until(at)); err != nil {
			return quantiles{}, firstOf(group.Wait(), err) // a submit that failed is why the rest is not sent
		}
		group.Go(func() error {
			sent := time.Now()
			err := r.submit(ctx, i, nil)
			took[i] = time.Since(sent)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return quantiles{}, err
	}
	return quantilesOf(took), nil
}

// pickup is how long a message takes from a submit to the relay when nothing else is going on.
func (r *room) pickup(ctx context.Context, sink *testsmtp.Server, n int) (quantiles, error) {
	if err := r.drained(ctx); err != nil {
		return quantiles{}, err
	}
	took := make([]time.Duration, n)
	for i := range n {
		before, began := sink.Count(), time.Now()
		if err := r.submit(ctx, i, nil); err != nil {
			return quantiles{}, err
		}
		for sink.Count() == before {
			if time.Since(began) > 10*time.Second {
				return quantiles{}, fmt.Errorf("message %d did not arrive", i)
			}
			if err := wait(ctx, 50*time.Microsecond); err != nil {
				return quantiles{}, err
			}
		}
		took[i] = time.Since(began)
		if err := wait(ctx, time.Duration(7+i%13)*time.Millisecond); err != nil {
			return quantiles{}, err
		}
	}
	return quantilesOf(took), nil
}

// list is the slowest page of an outbox with n scheduled messages.
func (r *room) list(ctx context.Context, n int) (time.Duration, error) {
	later := time.Now().Add(time.Hour)
	if err := rig.InParallel(ctx, n, 50, func(ctx context.Context, i int) error {
		return r.submit(ctx, i, &later)
	}); err != nil {
		return 0, err
	}
	var slowest time.Duration
	for _, page := range []int{0, 1, n / 40, n/20 - 1} {
		began := time.Now()
		p, err := api.ListOutbox.Do(ctx, r.client, api.OutboxQuery{Page: page, PageSize: 20})
		if err != nil {
			return 0, err
		}
		if p.Total != n || len(p.Messages) != 20 {
			return 0, fmt.Errorf("page %d has %d of %d messages, want 20 of %d", page, len(p.Messages), p.Total, n)
		}
		slowest = max(slowest, time.Since(began))
	}
	return slowest.Round(10 * time.Microsecond), nil
}

func (r *room) drained(ctx context.Context) error {
	return rig.Until(ctx, time.Minute, often, func() (bool, error) {
		page, err := api.ListOutbox.Do(ctx, r.client, api.OutboxQuery{})
		return page.Total == 0, err
	})
}

func (r *room) submit(ctx context.Context, i int, at *time.Time) error {
	_, err := api.Submit.Do(ctx, r.client, api.SubmitRequest{
		To: api.Addresses{{Address: fmt.Sprintf("ann%d@example.net", i)}}, Subject: "bench", Text: body, SendAt: at,
	})
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
