package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/internal/process"
	"github.com/postroom/postroom/internal/testsmtp"
)

// token is the admin token of all processes, secret what they seal with.
const (
	token  = "backlog-admin-token-0123456789abcdef"
	secret = "backlog-secret-0123456789abcdef0123456789abcdef"
)

// shop is an account with one message in a hundred.
const shop = "shop"

// house is everything that runs: Redis, Postroom, and the sink.
type house struct {
	o      options
	dir    string
	socket string
	server *process.Process // Redis
	rdb    *redis.Client
	sink   *testsmtp.Server
	door   *process.Process // Postroom with the role api
	url    string
	http   *http.Client
	client *api.Client

	empty   int64        // bytes Redis used before the first message
	refused atomic.Int64 // submits that were to come back; each may have been accepted all the same
	closing []func()
}

// open starts everything but the worker. On an error it closes what it started.
func open(ctx context.Context, o options) (*house, error) {
	h := &house{o: o, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * o.clients}, Timeout: 10 * time.Minute}}
	if err := h.build(ctx); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *house) build(ctx context.Context) error {
	var err error
	if h.dir, err = os.MkdirTemp(h.o.dir, "backlog-"); err != nil {
		return err
	}
	h.onClose(func() { _ = os.RemoveAll(h.dir) })
	if h.sink, err = testsmtp.New(testsmtp.Options{Discard: true}); err != nil {
		return err
	}
	h.onClose(h.sink.Close)
	if err := h.startRedis(ctx); err != nil {
		return err
	}
	if h.door, h.url, err = h.postroom("api", nil); err != nil {
		return err
	}
	h.client = api.NewClient(h.url, token, h.http)
	_, err = h.client.CreateAccount(ctx, api.Account{
		Account: shop, Email: "shop@example.com", SMTP: &api.SMTPServer{Host: h.sink.Host(), Port: h.sink.Port()},
	})
	return err
}

// startRedis starts a redis-server as Postroom's embedded one runs, which notes whatever takes it more than 5 ms.
func (h *house) startRedis(ctx context.Context) error {
	cmd, socket := process.RedisCommand(h.dir, "--appendfsync", h.o.fsync, "--slowlog-log-slower-than", "5000", "--slowlog-max-len", "10000",
		"--latency-monitor-threshold", "5")
	var err error
	if h.server, _, err = process.Start(cmd, filepath.Join(h.dir, "redis.log")); err != nil {
		return fmt.Errorf("redis-server is needed: %w", err)
	}
	h.onClose(h.server.Stop)
	h.socket = socket
	h.rdb = redis.NewClient(&redis.Options{Network: "unix", Addr: h.socket, ReadTimeout: time.Minute, DisableIdentity: true})
	h.onClose(func() { _ = h.rdb.Close() })
	return until(ctx, time.Minute, func() (bool, error) { return h.rdb.Ping(ctx).Err() == nil, nil })
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
func until(ctx context.Context, limit time.Duration, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		done, err := ok()
		if done || err != nil {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
