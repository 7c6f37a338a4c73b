// Package rig is what the programs of bench have in common when they build up what they measure: a directory, a Redis with its files in it,
// the order in which everything ends, and many things at once.
package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/bench/internal/process"
)

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
	Redis  *process.Process
	Socket string // of Redis
	DB     *redis.Client
}

// MakeDir makes a directory whose name begins so, in another one; empty: in that of temporary files. It goes when all is closed.
func (r *Rig) MakeDir(in, name string) (err error) {
	if r.Dir, err = os.MkdirTemp(in, name); err == nil {
		r.OnClose(func() { _ = os.RemoveAll(r.Dir) })
	}
	return err
}

// StartRedis starts a redis-server as Postroom's embedded one runs, with more arguments, and waits until it answers.
func (r *Rig) StartRedis(ctx context.Context, more ...string) (err error) {
	cmd, socket := process.RedisCommand(r.Dir, more...)
	if r.Redis, _, err = process.Start(cmd, filepath.Join(r.Dir, "redis.log")); err != nil {
		return fmt.Errorf("redis-server is needed: %w", err)
	}
	r.OnClose(r.Redis.Stop)
	r.Socket = socket
	r.DB = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, ReadTimeout: time.Minute, DisableIdentity: true})
	r.OnClose(func() { _ = r.DB.Close() })
	return Until(ctx, time.Minute, 20*time.Millisecond, func() bool { return r.DB.Ping(ctx).Err() == nil })
}

// Until waits for a condition, which it looks at every so often.
func Until(ctx context.Context, limit, every time.Duration, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !ok() {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// InParallel does n things, so many at a time.
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
