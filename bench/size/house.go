package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// account is the sender.
const account = "bench"

// house is everything that runs: Redis, Postroom, and the sink.
type house struct {
	rig.Rig
	o      options
	sink   *sink
	server *rig.Process // Postroom with the role api
	url    string
	http   *http.Client

	sums [][sha256.Size]byte // of the file of each message
}

// open starts everything but the worker.
func (h *house) open(ctx context.Context) (err error) {
	if h.sink, err = newSink(h.o.rate); err != nil {
		return err
	}
	h.OnClose(h.sink.close)
	if err := h.StartRedis(ctx, h.o.dir, "size-", rig.NoteSlow...); err != nil {
		return err
	}
	if h.server, h.url, err = h.postroom("api"); err != nil {
		return err
	}
	_, err = api.CreateAccount.Do(ctx, api.NewClient(h.url, rig.Token, h.http), api.Account{
		Account: account, Email: "shop@example.com", SMTP: &api.SMTPServer{Host: h.sink.host, Port: h.sink.port},
		Limits: &api.Limits{Connections: h.o.messages},
	})
	return err
}

// postroom starts a Postroom that takes messages a little larger than the files of this run, and works on all
// of them at once.
func (h *house) postroom(role string) (*rig.Process, string, error) {
	return h.StartPostroom(role, h.sink.url(), map[string]string{
		"message.maxSize": fmt.Sprint(h.o.size + h.o.size/2), "workers.submit": fmt.Sprint(h.o.messages),
	})
}
