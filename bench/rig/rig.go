// Package rig is what the programs of bench share: a main function, a directory, a Redis with its files in
// it, separate Postroom processes, ordered teardown, concurrent requests, and a table of results.
package rig

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
)

// Token is the admin token of every Postroom that a Rig starts. Secret is the secret that it seals with.
const (
	Token  = "bench-admin-token-0123456789abcdef"
	Secret = "bench-secret-0123456789abcdef0123456789abcdef"
)

// Main is the main function of a program. It parses the flags, calls run until it ends or is interrupted, and
// exits with 1 on an error. In a process that [Command] started it runs Postroom instead.
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

// Closing is a list of things to end. The zero value is empty.
type Closing struct{ ends []func() }

// OnClose adds a function to the list.
func (c *Closing) OnClose(end func()) { c.ends = append(c.ends, end) }

// Close calls the functions, the last added first: Postroom needs Redis to stop in order.
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

// MakeDir creates a directory with this prefix below in (empty: the directory of temporary files). Close
// removes it.
func (r *Rig) MakeDir(in, prefix string) (err error) {
	if r.Dir, err = os.MkdirTemp(in, prefix); err == nil {
		r.OnClose(func() { _ = os.RemoveAll(r.Dir) })
	}
	return err
}

// StartRedis creates a directory as MakeDir does, starts a redis-server in it as Postroom's embedded one
// runs, with more arguments, and waits until it answers.
func (r *Rig) StartRedis(ctx context.Context, in, prefix string, more ...string) (err error) {
	if err := r.MakeDir(in, prefix); err != nil {
		return err
	}
	if err := r.RestartRedis(ctx, more...); err != nil {
		return err
	}
	r.OnClose(func() { r.Redis.Stop() })
	return nil
}

// RestartRedis starts a redis-server in the directory, with what one before it left there, and waits until it
// answers.
func (r *Rig) RestartRedis(ctx context.Context, more ...string) (err error) {
	cmd, socket := RedisCommand(r.Dir, more...)
	if r.Redis, _, err = Start(cmd, filepath.Join(r.Dir, "redis.log")); err != nil {
		return fmt.Errorf("redis-server is needed: %w", err)
	}
	r.Socket = socket
	if r.DB == nil {
		r.DB = redis.NewClient(&redis.Options{
			Network: "unix", Addr: socket, ReadTimeout: time.Minute, DisableIdentity: true,
		})
		r.OnClose(func() { _ = r.DB.Close() })
	}
	return Until(ctx, time.Minute, 20*time.Millisecond, func() (bool, error) {
		return r.DB.Ping(ctx).Err() == nil, nil
	})
}

// ClientWith returns a client of a Postroom that a Rig started. It keeps at most this many connections.
func ClientWith(url, token string, connections int, timeout time.Duration) *api.Client {
	return api.NewClient(url, token, &http.Client{Timeout: timeout, Transport: &http.Transport{
		MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}})
}
