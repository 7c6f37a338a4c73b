package testredis

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// Commands counts the commands that a DB sends; a pipeline counts as one, as it costs one round trip.
type Commands struct{ n atomic.Int64 }

// CountCommands begins to count.
func CountCommands(db *redisdb.DB) *Commands {
	c := &Commands{}
	db.Client().AddHook(c)
	return c
}

// Sent is how many were sent so far.
func (c *Commands) Sent() int64 { return c.n.Load() }

// DialHook implements redis.Hook.
func (c *Commands) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (c *Commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.n.Add(1); return next(ctx, cmd) }
}

// ProcessPipelineHook implements redis.Hook.
func (c *Commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.n.Add(1); return next(ctx, cmds) }
}

// Holds says whether Redis has a text anywhere: in the name or the value of any key. A test that a secret is
// not there first shows that something else is found, so that it can fail.
func Holds(t testing.TB, db *redisdb.DB, text string) bool {
	t.Helper()
	c := db.Client()
	// or DUMP hides text by compressing it
	if err := c.ConfigSet(t.Context(), "rdbcompression", "no").Err(); err != nil {
		t.Fatal(err)
	}
	keys := c.Scan(t.Context(), 0, "*", 1000).Iterator()
	for keys.Next(t.Context()) {
		dump, err := c.Dump(t.Context(), keys.Val()).Bytes()
		if errors.Is(err, redis.Nil) {
			continue // it went in the meantime
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(dump, []byte(text)) || bytes.Contains([]byte(keys.Val()), []byte(text)) {
			return true
		}
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
	return false
}
