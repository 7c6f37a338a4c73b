package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// ackClient is the Redis client given to asynq's servers. It repairs their acknowledgements, the script calls
// that record the result of a task. asynq 0.26 repeats a failed one every five seconds, but under a context
// that it has cancelled itself. So no repetition can succeed, the lease runs out, and a minute later the
// finished task runs again. An acknowledgement is recognized by its context: only it has a deadline, the end
// of the lease.
type ackClient struct {
	redis.UniversalClient
	scripts redisdb.Evaler        // runs them
	topics  redis.UniversalClient // for subscriptions
	empty   *emptyQueues          // answers polls
	giveUp  <-chan struct{}       // closed when the grace of a stop ends: repetitions end
	log     *slog.Logger
	begun   sync.Map // what Pool.Take began, by the key of its task, until the handler is called
	runs    sync.Map // *run by the key of its task: handlers that called Acknowledge
	sources          // acknowledgements, as functions
}

// Subscribe subscribes asynq to the cancellation of tasks.
func (c *ackClient) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return c.topics.Subscribe(ctx, channels...)
}

// topicClient returns a client for the subscriptions of asynq's servers, and a function that closes it. It
// is separate because asynq crashes the process when a connection that it is subscribed on is closed. That
// happens when a server did not stop in time and the program closes its connections anyway.
func topicClient(c redis.UniversalClient) (topics redis.UniversalClient, closeIt func() error) {
	switch c := c.(type) {
	case *redis.Client:
		o := *c.Options()
		o.MinIdleConns = 0
		own := redis.NewClient(&o)
		own.AddHook(quietHook{})
		return own, own.Close
	case *redis.ClusterClient:
		o := *c.Options()
		o.MinIdleConns = 0
		own := redis.NewClusterClient(&o)
		own.OnNewNode(func(node *redis.Client) { node.AddHook(quietHook{}) })
		return own, own.Close
	}
	return c, func() error { return nil }
}

// Repetitions of an acknowledgement. They start immediately, because the reaper must not find a finished
// task before one succeeds.
const (
	ackPause   = 200 * time.Millisecond
	ackTimeout = 15 * time.Second // afterwards asynq's repetitions take over
)

// Eval runs a script for asynq.
func (c *ackClient) Eval(ctx context.Context, source string, keys []string, args ...any) *redis.Cmd {
	if r := c.runOf(ctx, keys); r != nil {
		lua := function("acknowledge", source)
		c.learn(source, lua)
		if answer := r.await(ctx, call{lua, keys, args}); answer != nil {
			return answer
		}
	}
	return c.persist(ctx, func(ctx context.Context) *redis.Cmd {
		return c.scripts.Eval(ctx, source, keys, args...)
	})
}

// EvalSha runs a script for asynq.
func (c *ackClient) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if r := c.runOf(ctx, keys); r != nil {
		lua, known := c.of(sha)
		if !known {
			return unknownScript(ctx)
		}
		if answer := r.await(ctx, call{lua, keys, args}); answer != nil {
			return answer
		}
	}
	return c.persist(ctx, func(ctx context.Context) *redis.Cmd {
		return c.scripts.EvalSha(ctx, sha, keys, args...)
	})
}

// persist makes the call, and repeats an acknowledgement while Redis is unavailable.
func (c *ackClient) persist(ctx context.Context, call func(context.Context) *redis.Cmd) *redis.Cmd {
	deadline, isAck := ctx.Deadline()
	cmd := call(uncancelled{ctx})
	if !isAck {
		return cmd
	}
	begun := time.Now()
	for redisdb.Unavailable(cmd.Err()) && time.Since(begun) < ackTimeout &&
		time.Now().Add(ackPause).Before(deadline) {
		c.log.Debug("acknowledgement of a task failed, repeating it", "error", cmd.Err())
		select {
		case <-ctx.Done():
			return cmd // one of asynq's own repetitions, which come every five seconds
		case <-c.giveUp:
			return cmd
		case <-time.After(ackPause):
		}
		cmd = call(uncancelled{ctx})
	}
	if isReply(cmd.Err(), "NOT FOUND") {
		// The task is no longer with this worker: the reply to an earlier try was lost, or the task was
		// reaped.
		return redis.NewCmdResult("OK", nil)
	}
	return cmd
}

// isReply reports whether the error is a reply of Redis with this prefix.
func isReply(err error, prefix string) bool { return err != nil && redis.HasErrorPrefix(err, prefix) }

// uncancelled keeps only the values and the deadline of its parent.
type uncancelled struct{ context.Context }

// Done returns nil: the context is never cancelled.
func (uncancelled) Done() <-chan struct{} { return nil }

// Err returns an error only after the deadline.
func (c uncancelled) Err() error {
	if deadline, ok := c.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}
