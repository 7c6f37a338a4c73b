package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// clients is how many submit at once when the rate is measured.
const clients = 32

// readyWithin is the limit for a redis-server to answer, and for a replica to be in step.
const readyWithin = 10 * time.Second

// text is the text of every message: 4 KiB, as in a typical notification.
var text = strings.Repeat("All work and no play makes a dull boy. \r\n", 100)

// house is a Postroom that accepts mail and delivers none, on the Redis of one level.
type house struct {
	level
	rig.Rig
	client *api.Client
}

// open starts everything.
func (h *house) open(ctx context.Context) error {
	if err := h.MakeDir("", "postroom-durability-"); err != nil {
		return err
	}
	address, err := h.redis(ctx, "master", "redis_version", h.args...)
	if err == nil && h.replica {
		host, port, _ := net.SplitHostPort(address)
		_, err = h.redis(ctx, "replica", "master_link_status:up", append(h.args[:len(h.args):len(h.args)],
			"--replicaof", host, port)...)
	}
	if err != nil {
		return err
	}
	a, stop, err := rig.Within(ctx, map[string]string{
		"data": h.Dir, "role": "api", "redis.url": "redis://" + address,
		"redis.waitReplicas": fmt.Sprint(h.wait), "smtp": "smtp://127.0.0.1:25", "from": "bench@example.com",
	})
	if err != nil {
		return err
	}
	h.OnClose(func() {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, "durability:", err)
		}
	})
	h.client = rig.ClientWith(a.URL(), a.Token(), clients, 30*time.Second)
	return nil
}

// redis starts a redis-server in a directory of its own, waits until its INFO has a text, and returns its
// address.
func (h *house) redis(ctx context.Context, name, until string, args ...string) (string, error) {
	address, err := rig.FreeAddress()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(h.Dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	host, port, _ := net.SplitHostPort(address)
	server, _, err := rig.Start(exec.Command("redis-server", append([]string{ //nolint:gosec // our own words
		"--port", port, "--bind", host, "--dir", dir, "--save", "", "--logfile", filepath.Join(dir, "redis.txt"),
		"--repl-diskless-sync-delay", "0"}, args...)...), filepath.Join(dir, "log"))
	if err != nil {
		return "", err
	}
	h.OnClose(server.Stop)
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
	defer client.Close() //nolint:errcheck // nothing is under way
	if err := rig.Until(ctx, readyWithin, 20*time.Millisecond, func() (bool, error) {
		return strings.Contains(client.Info(ctx).Val(), until), nil
	}); err != nil {
		return "", fmt.Errorf("wait for the %s on %s: %w", name, address, err)
	}
	return address, nil
}

func (h *house) submit(ctx context.Context, _ int) error {
	_, err := api.Submit.Do(ctx, h.client, api.SubmitRequest{To: api.Addresses{{Address: "ann@example.net"}},
		Subject: "bench", Text: text})
	return err
}

// measure submits at a steady rate, then as fast as possible.
func (h *house) measure(ctx context.Context, length time.Duration, rate int) (r result, err error) {
	if r.Quantiles, err = rig.Steadily(ctx, int(length.Seconds()*float64(rate)), rate, h.submit); err == nil {
		r.perSecond, err = h.flatOut(ctx, length)
	}
	return r, err
}

func (h *house) flatOut(ctx context.Context, length time.Duration) (perSecond float64, err error) {
	group, ctx := errgroup.WithContext(ctx)
	var n atomic.Int64
	began := time.Now()
	for range clients {
		group.Go(func() error {
			for time.Since(began) < length {
				if err := h.submit(ctx, 0); err != nil {
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
