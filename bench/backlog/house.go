package main

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

// often is how often a condition is looked at.
const often = 50 * time.Millisecond

// shop is an account with one message in a hundred.
const shop = "shop"

// house is everything that runs: Redis, Postroom, and the sink.
type house struct {
	rig.Rig
	o      options
	sink   *testsmtp.Server
	door   *rig.Process // Postroom with the role api
	url    string
	http   *http.Client
	client *api.Client

	empty   int64        // bytes Redis used before the first message
	refused atomic.Int64 // submits that were to come back; each may have been accepted all the same
}

// open starts everything but the worker. On an error it closes what it started.
func open(ctx context.Context, o options) (*house, error) {
	h := &house{o: o, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * o.clients},
		Timeout: 10 * time.Minute}}
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
	h.client = api.NewClient(h.url, rig.Token, h.http)
	_, err = api.CreateAccount.Do(ctx, h.client, api.Account{
		Account: shop, Email: "shop@example.com", SMTP: &api.SMTPServer{Host: h.sink.Host(), Port: h.sink.Port()},
	})
	return err
}

// postroom starts a Postroom, which runs until the house is closed, and returns its address: empty for a
// worker.
func (h *house) postroom(role string, more map[string]string) (*rig.Process, string, error) {
	set := map[string]string{"documents.store": "none"}
	maps.Copy(set, more)
	return h.StartPostroom(role, h.sink.URL(), set)
}

// startRedis starts a Redis that notes whatever takes it more than 5 ms.
func (h *house) startRedis(ctx context.Context) error {
	return h.StartRedis(ctx, "--appendfsync", h.o.fsync, "--slowlog-log-slower-than", "5000",
		"--slowlog-max-len", "10000", "--latency-monitor-threshold", "5")
}
