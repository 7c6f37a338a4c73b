package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// account is the one that sends.
const account = "bench"

// house is everything that runs: Redis, Postroom, and the sink.
type house struct {
	rig.Rig
	o    options
	sink *sink
	door *rig.Process // Postroom with the role api
	url  string
	http *http.Client

	sums [][sha256.Size]byte // of the file of each message
}

// open starts everything but the worker. On an error it closes what it started.
func open(ctx context.Context, o options) (*house, error) {
	h := &house{o: o, sums: make([][sha256.Size]byte, o.messages), http: &http.Client{Timeout: 10 * time.Minute}}
	if err := h.build(ctx); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *house) build(ctx context.Context) error {
	var err error
	if err = h.MakeDir(h.o.dir, "size-"); err != nil {
		return err
	}
	if h.sink, err = newSink(h.o.rate); err != nil {
		return err
	}
	h.OnClose(h.sink.close)
	// It notes whatever takes it more than 5 ms.
	if err := h.StartRedis(ctx, "--slowlog-log-slower-than", "5000", "--slowlog-max-len", "10000"); err != nil {
		return err
	}
	if h.door, h.url, err = h.postroom("api"); err != nil {
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
