package queue

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// capture is the Redis client given to asynq's producer. It sends nothing. It records the one script call
// that makes an enqueue, so that many of them go to Redis in one pipeline, or together with other writes,
// because asynq has no batches. It depends on asynq making one script call for each enqueue, and on nothing
// in the script. TestCaptureSeesOneScriptCall checks that.
type capture struct {
	redis.UniversalClient
	sources
}

// call is one script call that asynq would have made.
type call struct {
	source string
	keys   []string
	args   []any
}

type captureKey struct{}

// into returns a context under which script calls are recorded in c.
func (*capture) into(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, captureKey{}, c)
}

// noScript is the reply to an unknown script: it makes go-redis send the source instead.
type noScript struct{}

func (noScript) Error() string { return "NOSCRIPT No matching script" }
func (noScript) RedisError()   {}

func unknownScript(ctx context.Context) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(noScript{})
	return cmd
}

// EvalSha records the call if the source of the script is known; otherwise it requests the source.
func (c *capture) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	source, known := c.of(sha)
	if !known {
		return unknownScript(ctx)
	}
	return note(ctx, call{source: source, keys: keys, args: args})
}

// Eval stores the source of a script, extended by the announcement of its task, and records the call.
func (c *capture) Eval(ctx context.Context, source string, keys []string, args ...any) *redis.Cmd {
	extended := announcing(source, keys)
	c.learn(source, extended)
	return note(ctx, call{source: extended, keys: keys, args: args})
}

// SAdd replies to the registration of a queue in asynq:queues. asynq does that once for each process and
// never again, not even after a FLUSHALL. Client registers the queues itself, repeatedly.
func (c *capture) SAdd(ctx context.Context, _ string, _ ...any) *redis.IntCmd {
	return redis.NewIntResult(1, nil)
}

// note records the call and reports to asynq that the task was enqueued.
func note(ctx context.Context, k call) *redis.Cmd {
	if into, ok := ctx.Value(captureKey{}).(*call); ok {
		*into = k
	}
	return redis.NewCmdResult(int64(1), nil)
}
