package queue

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Every five seconds asynq's servers write that they are there, for the dashboard, and their subscriptions
// are pinged every three. Together that was more than half of what an idle process asked of Redis. So a
// server without tasks writes it every beatEvery, which holds for beatHolds.
const (
	beatEvery = 30 * time.Second
	beatHolds = 75 * time.Second
	pingEvery = 30 * time.Second
)

const (
	serversKey = "asynq:servers" // ZSET of the keys of servers
	workersKey = "asynq:workers" // ZSET of the keys of servers' current work
)

// beats are an asynq server's reports about itself. Only its heartbeat uses them.
type beats struct {
	listed map[string]redis.Z // members to add to the sets
	idle   time.Time          // when it last wrote that it has no tasks; zero if it had some since
}

// isBeat reports whether asynq writes that a server is alive, and its current work.
func isBeat(keys []string, args []any) bool {
	return len(keys) == 2 && strings.HasPrefix(keys[0], serversKey+":") && len(args) >= 2
}

// ZAdd adds to a sorted set for asynq. Sets of servers wait for the script that follows.
func (c *pollingClient) ZAdd(ctx context.Context, key string, members ...redis.Z) *redis.IntCmd {
	if (key != serversKey && key != workersKey) || len(members) != 1 {
		return c.ackClient.ZAdd(ctx, key, members...)
	}
	if c.beats.listed == nil {
		c.beats.listed = map[string]redis.Z{}
	}
	c.beats.listed[key] = members[0]
	return redis.NewIntResult(1, nil)
}

// beat writes that a server is alive. call is asynq's script. Its arguments are the seconds that it holds,
// the server, and its current work.
func (c *pollingClient) beat(ctx context.Context, keys []string, args []any,
	call func() *redis.Cmd) *redis.Cmd {
	if len(args) > 2 {
		c.beats.idle = time.Time{}
		for key, member := range c.beats.listed {
			if err := c.ackClient.ZAdd(ctx, key, member).Err(); err != nil {
				return redis.NewCmdResult(nil, err)
			}
		}
		return call()
	}
	now := time.Now()
	if now.Sub(c.beats.idle) < beatEvery {
		return redis.NewCmdResult("OK", nil)
	}
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, serversKey, redis.Z{Score: float64(now.Add(beatHolds).Unix()), Member: keys[0]})
		p.SetEx(ctx, keys[0], args[1], beatHolds)
		p.Del(ctx, keys[1])
		return nil
	})
	if err == nil {
		c.beats.idle = now
	}
	return redis.NewCmdResult("OK", err)
}

// quietHook makes connections for subscriptions, which are pinged less often.
type quietHook struct{}

// DialHook, ProcessHook and ProcessPipelineHook implement redis.Hook.
func (quietHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &quietConn{Conn: conn, pinged: time.Now()}, nil
	}
}

func (quietHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (quietHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// quietConn leaves out most pings. They only show that the connection can still be written to; nothing waits
// for their answer.
type quietConn struct {
	net.Conn
	pinged time.Time
}

// Write writes to the connection. go-redis makes one write at a time.
func (c *quietConn) Write(b []byte) (int, error) {
	if string(b) == "*1\r\n$4\r\nping\r\n" {
		if time.Since(c.pinged) < pingEvery {
			return len(b), nil
		}
		c.pinged = time.Now()
	}
	return c.Conn.Write(b)
}
