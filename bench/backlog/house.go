package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/internal/process"
	"github.com/postroom/postroom/bench/internal/rig"
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
	rig.Rig
	o      options
	sink   *testsmtp.Server
	door   *process.Process // Postroom with the role api
	url    string
	http   *http.Client
	client *api.Client

	empty   int64        // bytes Redis used before the first message
	refused atomic.Int64 // submits that were to come back; each may have been accepted all the same
}

// open starts everything but the worker. On an error it closes what it started.
func open(ctx context.Context, o options) (*house, error) {
	h := &house{o: o, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * o.clients}, Timeout: 10 * time.Minute}}
	if err := h.build(ctx); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *house) build(ctx context.Context) error {
	var err error
	if err = h.MakeDir(h.o.dir, "backlog-"); err != nil {
		return err
	}
	if h.sink, err = testsmtp.New(testsmtp.Options{Discard: true}); err != nil {
		return err
	}
	h.OnClose(h.sink.Close)
	if err := h.startRedis(ctx); err != nil {
		return err
	}
	if h.door, h.url, err = h.postroom("api", nil); err != nil {
		return err
	}
	h.client = api.NewClient(h.url, token, h.http)
	_, err = api.CreateAccount.Do(ctx, h.client, api.Account{
		Account: shop, Email: "shop@example.com", SMTP: &api.SMTPServer{Host: h.sink.Host(), Port: h.sink.Port()},
	})
	return err
}

// startRedis starts a Redis that notes whatever takes it more than 5 ms.
func (h *house) startRedis(ctx context.Context) error {
	return h.StartRedis(ctx, "--appendfsync", h.o.fsync, "--slowlog-log-slower-than", "5000", "--slowlog-max-len", "10000", "--latency-monitor-threshold", "5")
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
