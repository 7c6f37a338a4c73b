package accounts

import (
	"bytes"
	"context"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/redisdb"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// commands counts what is sent to Redis.
type commands struct{ n atomic.Int64 }

func (c *commands) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.n.Add(1); return next(ctx, cmd) }
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.n.Add(1); return next(ctx, cmds) }
}

func countCommands(db *redisdb.DB) *commands {
	c := &commands{}
	db.Client().AddHook(c)
	return c
}

// found reports whether Redis holds the text anywhere: in the name or the value of any key.
func found(t *testing.T, db *redisdb.DB, text string) bool {
	t.Helper()
	c := db.Client()
	if err := c.ConfigSet(t.Context(), "rdbcompression", "no").Err(); err != nil { // or DUMP hides text by compressing it
		t.Fatal(err)
	}
	keys := c.Scan(t.Context(), 0, "*", 1000).Iterator()
	for keys.Next(t.Context()) {
		dump, err := c.Dump(t.Context(), keys.Val()).Bytes()
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
