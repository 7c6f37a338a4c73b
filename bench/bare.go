package main

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// clients is how many clients submit together.
const clients = 50

// body is the text of every message: 4 KiB, as in a typical notification.
var body = strings.Repeat("All work and no play makes a dull boy. \r\n", 100)

const sender, recipient = "bench@example.com", "ann@example.net"

// timed returns the rate at which do is called n times.
func timed(ctx context.Context, n int, do func(context.Context, int) error) (values, error) {
	began := time.Now()
	err := rig.InParallel(ctx, n, clients, do)
	return values{{rate, float64(n) / time.Since(began).Seconds()}}, err
}

// sink is a relay that takes everything, after a delay.
func sink(delay time.Duration) (*testsmtp.Server, error) {
	return testsmtp.New(testsmtp.Options{Discard: true, Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb != "DOT" {
			return testsmtp.Action{}
		}
		return testsmtp.Action{Delay: delay}
	}})
}

func rawSMTP(ctx context.Context, o options) (values, error) { return rawTo(ctx, 0, 2*o.messages) }

func rawSlowSMTP(ctx context.Context, o options) (values, error) {
	return rawTo(ctx, slowness, o.messages/2)
}

// rawTo sends with the SMTP client alone.
func rawTo(ctx context.Context, delay time.Duration, n int) (values, error) {
	relay, err := sink(delay)
	if err != nil {
		return nil, err
	}
	defer relay.Close()
	s, err := smtpsend.New(smtpsend.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // the measurement is over
	host, port, _ := net.SplitHostPort(relay.Addr())
	number, _ := strconv.Atoi(port)
	to := smtpsend.Relay{Host: host, Port: number, TLS: smtpsend.TLSNone}
	data := smtpsend.Bytes("From: " + sender + "\r\nTo: " + recipient + "\r\nSubject: bench\r\n\r\n" + body)
	return timed(ctx, n, func(ctx context.Context, _ int) error {
		_, err := s.Send(ctx, to, smtpsend.Message{From: sender, To: []string{recipient}, Body: data})
		return err
	})
}

func rawSet(ctx context.Context, o options) (values, error) {
	var r rig.Rig
	defer r.Close()
	if err := r.StartRedis(ctx, "", "bench-", "--appendfsync", "everysec"); err != nil {
		return nil, err
	}
	return timed(ctx, 5*o.messages, func(ctx context.Context, i int) error {
		return r.DB.Set(ctx, "message:"+strconv.Itoa(i), body, 0).Err()
	})
}

func rawEnqueue(ctx context.Context, o options) (values, error) {
	got, err := rawQueue(ctx, 2*o.messages)
	return got[:min(1, len(got))], err
}

func rawProcess(ctx context.Context, o options) (values, error) {
	got, err := rawQueue(ctx, 2*o.messages)
	return got[min(1, len(got)):], err
}

// rawQueue enqueues n tasks with asynq alone, and processes them. It returns both rates.
func rawQueue(ctx context.Context, n int) (values, error) {
	var r rig.Rig
	defer r.Close()
	if err := r.StartRedis(ctx, "", "bench-", "--appendfsync", "everysec"); err != nil {
		return nil, err
	}
	at := asynq.RedisClientOpt{Network: "unix", Addr: r.Socket, PoolSize: clients}
	c := asynq.NewClient(at)
	defer c.Close() //nolint:errcheck // the measurement is over
	enqueued, err := timed(ctx, n, func(ctx context.Context, i int) error {
		_, err := c.EnqueueContext(ctx, asynq.NewTask("bench", []byte(strconv.Itoa(i))))
		return err
	})
	if err != nil {
		return nil, err
	}
	var done atomic.Int64
	s := asynq.NewServer(at, asynq.Config{Concurrency: clients, LogLevel: asynq.ErrorLevel})
	began := time.Now()
	if err := s.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		done.Add(1)
		return nil
	})); err != nil {
		return nil, err
	}
	defer s.Shutdown()
	err = rig.Until(ctx, time.Minute, often, func() (bool, error) { return done.Load() >= int64(n), nil })
	return append(enqueued, value{rate, float64(n) / time.Since(began).Seconds()}), err
}
