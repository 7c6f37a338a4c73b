package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testsmtp"
)

// target is the address that every link leads to.
const target = "https://shop.example.com/autumn?utm_source=news&utm_medium=email"

const (
	submitters = 50                    // at once
	often      = 20 * time.Millisecond // interval at which conditions are checked
)

// house is everything that runs: Redis, Postroom, the sink, and the bare server.
type house struct {
	rig.Rig
	o        options
	sink     *testsmtp.Server
	postroom *rig.Process
	url      string
	bareURL  string
	client   *api.Client
	paths    []string // of pictures and links, by message
	hits     int      // made so far, to Postroom
}

// open starts everything.
func (h *house) open(ctx context.Context) (err error) {
	if h.sink, err = testsmtp.New(testsmtp.Options{Discard: true}); err != nil {
		return err
	}
	h.OnClose(h.sink.Close)
	if err := h.StartRedis(ctx, "", "tracking-"); err != nil {
		return err
	}
	set := map[string]string{
		"serviceUrl": "https://mail.example.com", "tracking.opens": "true", "tracking.clicks": "true",
	}
	role := "all"
	if h.o.apart {
		role = "api"
		if _, _, err := h.StartPostroom("worker", h.sink.URL(), set); err != nil {
			return err
		}
	}
	if h.postroom, h.url, err = h.StartPostroom(role, h.sink.URL(), set); err != nil {
		return err
	}
	h.client = rig.Client(h.url, 200, time.Minute)
	return h.startBare()
}

// startBare starts this program again as the bare server.
func (h *house) startBare() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), askedBare+"=1")
	p, out, err := rig.Start(cmd, filepath.Join(h.Dir, "bare.log"))
	if err != nil {
		return err
	}
	h.OnClose(p.Stop)
	h.bareURL, err = rig.Address(out)
	return err
}

// fill sends messages, and makes the tokens that are in them.
func (h *house) fill(ctx context.Context) error {
	ids := make([]string, h.o.messages)
	err := rig.InParallel(ctx, h.o.messages, submitters, func(ctx context.Context, i int) (err error) {
		ids[i], err = h.submit(ctx, i)
		return err
	})
	if err != nil {
		return err
	}
	sealing, err := seal.New([]byte(rig.Secret))
	if err != nil {
		return err
	}
	key, err := sealing.Derive("signed tokens")
	if err != nil {
		return err
	}
	ring, err := signedtoken.New([]signedtoken.Key{signedtoken.KeyOf(key)})
	if err != nil {
		return err
	}
	for _, id := range ids {
		about := signedtoken.Token{Account: "default", MessageID: id}
		open, err := ring.Sign(signedtoken.Open, about)
		if err != nil {
			return err
		}
		about.URL = target
		click, err := ring.Sign(signedtoken.Click, about)
		if err != nil {
			return err
		}
		h.paths = append(h.paths, "/o/"+open, "/c/"+click)
	}
	return h.arrived(ctx, h.o.messages)
}

// hit returns the path of request i: opens and clicks in turn, message by message.
func (h *house) hit(i int) string { return h.paths[i%len(h.paths)] }

// send sends messages as fast as possible, and returns how many a second arrived.
func (h *house) send(ctx context.Context) (float64, error) {
	before, began := h.sink.Count(), time.Now()
	err := rig.InParallel(ctx, h.o.messages, submitters, func(ctx context.Context, i int) error {
		_, err := h.submit(ctx, i)
		return err
	})
	if err == nil {
		err = h.arrived(ctx, before+h.o.messages)
	}
	return float64(h.o.messages) / time.Since(began).Seconds(), err
}

func (h *house) submit(ctx context.Context, i int) (string, error) {
	answer, err := api.Submit.Do(ctx, h.client, api.SubmitRequest{
		To: api.Addresses{{Address: fmt.Sprintf("ann%d@example.net", i)}}, Subject: "Autumn",
		HTML: `<p>Look: <a href="` + target + `">autumn</a></p>`,
	})
	return answer.QueueID, err
}

func (h *house) arrived(ctx context.Context, n int) error {
	if err := rig.Until(ctx, 2*time.Minute, often, func() (bool, error) {
		return h.sink.Count() >= n, nil
	}); err != nil {
		return fmt.Errorf("%d of %d messages arrived: %w", h.sink.Count(), n, err)
	}
	return nil
}

// counted returns the opens and clicks in the counters.
func (h *house) counted(ctx context.Context) int {
	s, err := api.GetStats.Do(ctx, h.client, api.CounterQuery{})
	if err != nil {
		return 0
	}
	l := s.Counters.LaterDay
	return l.Opened + l.OpenedBots + l.Clicked + l.ClickedBots
}
