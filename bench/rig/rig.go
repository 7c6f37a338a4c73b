// Package rig is what the programs of bench share: a main function, a directory, a Redis with its files in
// it, Postroom in processes of its own, the order in which everything ends, many things at once, and a table
// of results.
package rig

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
)

// Token is the admin token of every Postroom that a Rig starts. Secret is what it seals with.
const (
	Token  = "bench-admin-token-0123456789abcdef"
	Secret = "bench-secret-0123456789abcdef0123456789abcdef"
)

// Main is the main function of a program: it parses the flags, runs it until it ends or is interrupted, and
// exits with 1 on an error. A program that was started to be a Postroom is one instead.
func Main(name string, run func(context.Context) error) {
	Serve()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Closing is what has to be ended. The zero value has nothing to end.
type Closing struct{ ends []func() }

// OnClose adds something.
func (c *Closing) OnClose(end func()) { c.ends = append(c.ends, end) }

// Close ends everything, the last added first: Postroom needs Redis to stop well.
func (c *Closing) Close() {
	for i := len(c.ends) - 1; i >= 0; i-- {
		c.ends[i]()
	}
	c.ends = nil
}

// Rig is a directory and a Redis. The zero value has neither.
type Rig struct {
	Closing
	Dir    string
	Redis  *Process
	Socket string // of Redis
	DB     *redis.Client
}

// MakeDir makes a directory with this prefix below in (empty: the directory of temporary files). Close
// removes it.
func (r *Rig) MakeDir(in, prefix string) (err error) {
	if r.Dir, err = os.MkdirTemp(in, prefix); err == nil {
		r.OnClose(func() { _ = os.RemoveAll(r.Dir) })
	}
	return err
}

// StartRedis starts a redis-server as Postroom's embedded one runs, with more arguments, and waits until it
// answers.
func (r *Rig) StartRedis(ctx context.Context, more ...string) (err error) {
	cmd, socket := RedisCommand(r.Dir, more...)
	if r.Redis, _, err = Start(cmd, filepath.Join(r.Dir, "redis.log")); err != nil {
		return fmt.Errorf("redis-server is needed: %w", err)
	}
	r.OnClose(r.Redis.Stop)
	r.Socket = socket
	r.DB = redis.NewClient(&redis.Options{
		Network: "unix", Addr: socket, ReadTimeout: time.Minute, DisableIdentity: true,
	})
	r.OnClose(func() { _ = r.DB.Close() })
	return Until(ctx, time.Minute, 20*time.Millisecond, func() (bool, error) {
		return r.DB.Ping(ctx).Err() == nil, nil
	})
}

// StartPostroom starts a Postroom on the Redis and waits until it is ready. It sends to the relay of this
// URL. Close stops it. The address is empty for a worker.
func (r *Rig) StartPostroom(role, relay string, more map[string]string) (p *Process, address string,
	err error) {
	set := map[string]string{
		"redis.url": "unix://" + r.Socket, "token": Token, "secret": Secret, "smtp": relay,
		"from": "Example Shop <shop@example.com>",
	}
	for key, value := range more {
		set[key] = value
	}
	if p, address, err = startPostroom(role, r.Dir, set); err == nil {
		r.OnClose(p.Stop)
	}
	return p, address, err
}

// Client is a client of a Postroom that a Rig started. It keeps as many connections open as are given.
func Client(url string, connections int, timeout time.Duration) *api.Client {
	return api.NewClient(url, Token, &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: connections}, Timeout: timeout,
	})
}

// Until looks at a condition every so often until it holds, for limit at most. An error ends the waiting.
func Until(ctx context.Context, limit, every time.Duration, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// InParallel does n things, at most workers at a time.
func InParallel(ctx context.Context, n, workers int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range workers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := do(ctx, i); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}
