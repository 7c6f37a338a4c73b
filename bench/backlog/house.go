package main

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/testsmtp"
)

// often is the interval at which conditions are checked.
const often = 50 * time.Millisecond

// shop is an account with one message in a hundred.
const shop = "shop"

// house is everything that runs: Redis, Postroom, and the sink.
type house struct {
	rig.Rig
	o      options
	sink   *testsmtp.Server
	server *rig.Process // Postroom with the role api
	client *api.Client

	empty   int64        // bytes Redis used before the first message
	refused atomic.Int64 // submits that were repeated; each may have been accepted the first time
}

// open starts everything but the worker. Its Redis logs every command of more than 5 ms.
func (h *house) open(ctx context.Context) (err error) {
	if h.sink, err = testsmtp.New(testsmtp.Options{Discard: true}); err != nil {
		return err
	}
	h.OnClose(h.sink.Close)
	if err := h.StartRedis(ctx, h.o.dir, "backlog-", append([]string{
		"--appendfsync", h.o.fsync, "--latency-monitor-threshold", "5"}, rig.NoteSlow...)...); err != nil {
		return err
	}
	server, url, err := h.postroom("api", nil)
	if err != nil {
		return err
	}
	h.server, h.client = server, rig.Client(url, 2*h.o.clients, 10*time.Minute)
	_, err = api.CreateAccount.Do(ctx, h.client, api.Account{
		Account: shop, Email: "shop@example.com", SMTP: &api.SMTPServer{Host: h.sink.Host(), Port: h.sink.Port()},
	})
	return err
}

// postroom starts a Postroom, and returns its address: empty for a worker.
func (h *house) postroom(role string, more map[string]string) (*rig.Process, string, error) {
	set := map[string]string{"documents.store": "none"}
	maps.Copy(set, more)
	return h.StartPostroom(role, h.sink.URL(), set)
}
