package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/internal/process"
)

// token is the admin token of all processes, secret what they seal with, account the one that sends.
const (
	token   = "size-admin-token-0123456789abcdef"
	secret  = "size-secret-0123456789abcdef0123456789abcdef"
	account = "bench"
)

// house is everything that runs: Redis, Postroom, and the sink.
type house struct {
	o      options
	dir    string
	socket string
	redis  *process.Process
	rdb    *redis.Client
	sink   *sink
	door   *process.Process // Postroom with the role api
	url    string
	http   *http.Client

	sums    [][sha256.Size]byte // of the file of each message
	closing []func()
}

// open starts everything but the worker. On an error it closes what it started.
func open(ctx context.Context, o options) (*house, error) {
	h := &house{o: o, sums: make([][sha256.Size]byte, o.messages), http: &http.Client{Timeout: 10 * time.Minute}}
	if err := h.build(ctx); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *house) build(ctx context.Context) error {
	var err error
	if h.dir, err = os.MkdirTemp(h.o.dir, "size-"); err != nil {
		return err
	}
	h.onClose(func() { _ = os.RemoveAll(h.dir) })
	if h.sink, err = newSink(h.o.rate); err != nil {
		return err
	}
	h.onClose(h.sink.close)
	if err := h.startRedis(ctx); err != nil {
		return err
	}
	if h.door, h.url, err = h.postroom("api"); err != nil {
		return err
	}
	_, err = api.NewClient(h.url, token, h.http).CreateAccount(ctx, api.Account{
		Account: account, Email: "shop@example.com", SMTP: &api.SMTPServer{Host: h.sink.host, Port: h.sink.port},
		Limits: &api.Limits{Connections: h.o.messages},
	})
	return err
}

// startRedis starts a redis-server that notes whatever takes it more than 5 ms.
func (h *house) startRedis(ctx context.Context) error {
	cmd, socket := process.RedisCommand(h.dir, "--slowlog-log-slower-than", "5000", "--slowlog-max-len", "10000")
	var err error
	if h.redis, _, err = process.Start(cmd, filepath.Join(h.dir, "redis.log")); err != nil {
		return fmt.Errorf("redis-server is needed: %w", err)
	}
	h.onClose(h.redis.Stop)
	h.socket = socket
	h.rdb = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, ReadTimeout: time.Minute, DisableIdentity: true})
	h.onClose(func() { _ = h.rdb.Close() })
	return until(ctx, time.Minute, func() bool { return h.rdb.Ping(ctx).Err() == nil })
}

// postroom starts a Postroom that takes messages a little larger than the files of this run, and works on all of them at once.
func (h *house) postroom(role string) (*process.Process, string, error) {
	p, url, err := process.StartPostroom(role, h.dir, map[string]string{
		"redis.url": "unix://" + h.socket, "token": token, "secret": secret, "smtp": h.sink.url(), "from": "Example Shop <shop@example.com>",
		"message.maxSize": fmt.Sprint(h.o.size + h.o.size/2), "workers.submit": fmt.Sprint(h.o.messages),
	})
	if err == nil {
		h.onClose(p.Stop)
	}
	return p, url, err
}

func (h *house) onClose(do func()) { h.closing = append(h.closing, do) }

// close ends everything, the last started first: Postroom needs Redis to stop well.
func (h *house) close() {
	for i := len(h.closing) - 1; i >= 0; i-- {
		h.closing[i]()
	}
	h.closing = nil
}

// until waits for a condition.
func until(ctx context.Context, limit time.Duration, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !ok() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
