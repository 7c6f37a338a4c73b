package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/postroom/postroom/bench/rig"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
)

// clients is how many submit at once when the rate is measured.
const clients = 32

// text is that of every message: 4 KiB, as in a typical notification.
var text = strings.Repeat("All work and no play makes a dull boy. \r\n", 100)

// house is a Postroom that accepts mail and delivers none, and the Redis of one level below it.
type house struct {
	level
	dir     string
	servers []*server
	client  *api.Client
	stop    func() error
}

func open(ctx context.Context, l level) (h *house, err error) {
	h = &house{level: l}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.dir, err = os.MkdirTemp("", "postroom-durability-"); err != nil {
		return h, err
	}
	if err = h.startRedis(ctx); err != nil {
		return h, err
	}
	return h, h.startPostroom(ctx)
}

// startRedis starts the level's master, and its replica.
func (h *house) startRedis(ctx context.Context) error {
	master, err := serve(ctx, h.dir, "master", h.args)
	if err != nil {
		return err
	}
	h.servers = append(h.servers, master)
	if !h.replica {
		return nil
	}
	replica, err := serve(ctx, h.dir, "replica", append(slices.Clone(h.args), "--replicaof", "127.0.0.1",
		master.port))
	if err != nil {
		return err
	}
	h.servers = append(h.servers, replica)
	return master.awaitReplica(ctx)
}

func (h *house) startPostroom(ctx context.Context) error {
	a, stop, err := rig.Within(ctx, map[string]string{
		"data": h.dir, "role": "api", "redis.url": "redis://127.0.0.1:" + h.servers[0].port,
		"redis.waitReplicas": fmt.Sprint(h.wait), "smtp": "smtp://127.0.0.1:25", "from": "bench@example.com",
	})
	if err != nil {
		return err
	}
	h.stop = stop
	transport := &http.Transport{MaxIdleConnsPerHost: clients, MaxConnsPerHost: clients}
	h.client = api.NewClient(a.URL(), a.Token(), &http.Client{Transport: transport, Timeout: 30 * time.Second})
	return nil
}

// close ends everything and removes what it left.
func (h *house) close() {
	var err error
	if h.stop != nil {
		err = h.stop()
	}
	for _, s := range h.servers {
		s.kill()
	}
	if err = errors.Join(err, os.RemoveAll(h.dir)); err != nil {
		fmt.Fprintln(os.Stderr, "durability:", err)
	}
}

func (h *house) submit(ctx context.Context) error {
	_, err := api.Submit.Do(ctx, h.client, api.SubmitRequest{To: api.Addresses{{Address: "ann@example.net"}},
		Subject: "bench", Text: text})
	return err
}

// measure submits at a steady rate, then as fast as it goes.
func (h *house) measure(ctx context.Context, length time.Duration, rate int) (result, error) {
	took, err := h.steady(ctx, int(length.Seconds()*float64(rate)), rate)
	if err != nil {
		return result{}, err
	}
	slices.Sort(took)
	perSecond, err := h.flatOut(ctx, length)
	return result{p50: took[len(took)/2], p99: took[len(took)*99/100], perSecond: perSecond}, err
}

func (h *house) steady(ctx context.Context, n, rate int) ([]time.Duration, error) {
	took := make([]time.Duration, n)
	group, ctx := errgroup.WithContext(ctx)
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for i := range n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), group.Wait())
		}
		group.Go(func() error {
			began := time.Now()
			err := h.submit(ctx)
			took[i] = time.Since(began)
			return err
		})
	}
	return took, group.Wait()
}

func (h *house) flatOut(ctx context.Context, length time.Duration) (perSecond float64, err error) {
	group, ctx := errgroup.WithContext(ctx)
	var n atomic.Int64
	began := time.Now()
	for range clients {
		group.Go(func() error {
			for time.Since(began) < length {
				if err := h.submit(ctx); err != nil {
					return err
				}
				n.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	return float64(n.Load()) / time.Since(began).Seconds(), err
}
