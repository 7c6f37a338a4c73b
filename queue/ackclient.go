package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// ackClient is the Redis client given to asynq's servers. asynq 0.26 repeats a failed acknowledgement every five seconds, but under a
// context it has cancelled itself, so no repetition can succeed, the lease runs out, and a minute later the finished task runs again.
// ackClient drops the cancellation and keeps the deadline, which is the end of the lease.
type ackClient struct {
	redis.UniversalClient
	log *slog.Logger
}

// Eval runs a script for asynq.
func (c ackClient) Eval(ctx context.Context, source string, keys []string, args ...any) *redis.Cmd {
	return c.reported(c.UniversalClient.Eval(uncancelled{ctx}, source, keys, args...))
}

// EvalSha runs a script for asynq.
func (c ackClient) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return c.reported(c.UniversalClient.EvalSha(uncancelled{ctx}, sha, keys, args...))
}

// reported logs scripts that failed. asynq's own warnings about them are off: they are mixed with one for each dropped task.
func (c ackClient) reported(cmd *redis.Cmd) *redis.Cmd {
	err := cmd.Err()
	if err == nil || errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "NOSCRIPT") {
		return cmd
	}
	c.log.Debug("queue script failed", "error", err)
	return cmd
}

// uncancelled is a context that keeps the values and the deadline of its parent and nothing else.
type uncancelled struct{ context.Context }

func (uncancelled) Done() <-chan struct{} { return nil }

func (c uncancelled) Err() error {
	if deadline, ok := c.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}
