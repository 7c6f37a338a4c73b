package queue

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Take is asynq's look for a queue's task, as a part of a script that has Lua among its preludes. A task is
// then taken and its work begun in one step.
type Take struct {
	Queue string
	// the function take(KEYS, ARGV), which returns the task, or nothing, and how many are left; and the function
	// taken(KEYS), which then returns its ID
	Lua    string
	Keys   []string // their KEYS
	Values []string // their ARGV
}

// Taken is such a script's answer.
type Taken struct {
	Task  string // as take returned it; empty if there is none
	ID    string
	Left  int
	Begun any // what Begun returns to the handler
}

// Begun returns what Pool.Take began for the task of a handler's context, or nil.
func Begun(ctx context.Context) any {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r.begun
	}
	return nil
}

// looking is asynq's script that takes a task off a pending list, KEYS[1].
type looking struct {
	lua   string        // as the functions of Take
	alone *redis.Script // nothing is begun
}

// taking extends the script by how many tasks are left, so that servers needn't ask again after the last one.
func taking(source string) *looking {
	lua := function("dequeue", source) + `local function take(KEYS, ARGV)
  local task = dequeue(KEYS, ARGV)
  if task then return task, redis.call("LLEN", KEYS[1]) end
end
local function taken(KEYS) return redis.call("LINDEX", KEYS[3], 0) end
`
	return &looking{lua, redis.NewScript(lua + `local task, left = take(KEYS, ARGV)
if not task then return {} end
return {task, left}`)}
}

// pollingClient is the Redis client given to one pool's asynq servers. It recognizes the call with which they
// look for a task, and that with which they move tasks whose time has come, by their keys.
type pollingClient struct {
	*ackClient
	servers *pollers
	chores  bool // it does what one server of the pool does for all
	delayed *delayedSets
	beats   beats
	begin   func(context.Context, Take) (Taken, error) // Pool.Take
	look    atomic.Pointer[looking]                    // nil if asynq has not shown its source yet
}

func isTake(keys []string) bool { return len(keys) == 4 && isPending(keys[0]) }

// Eval runs a script for asynq.
func (c *pollingClient) Eval(ctx context.Context, source string, keys []string, args ...any) *redis.Cmd {
	if isTake(keys) {
		c.look.Store(taking(source))
		return c.EvalSha(ctx, "", keys, args...)
	}
	return c.run(ctx, keys, args, func() *redis.Cmd { return c.ackClient.Eval(ctx, source, keys, args...) })
}

// EvalSha runs a script for asynq.
func (c *pollingClient) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if !isTake(keys) {
		return c.run(ctx, keys, args, func() *redis.Cmd { return c.ackClient.EvalSha(ctx, sha, keys, args...) })
	}
	look := c.look.Load()
	if look == nil {
		return unknownScript(ctx)
	}
	return c.empty.take(c.servers, keys[0], func() (*redis.Cmd, bool) {
		t, err := c.taken(ctx, look, call{"", keys, args})
		switch {
		case err != nil:
			return redis.NewCmdResult(nil, err), false
		case t.Task == "":
			return redis.NewCmdResult(nil, redis.Nil), false
		}
		return redis.NewCmdResult(t.Task, nil), t.Left == 0
	})
}

// taken takes a task, and begins its work if the pool does so.
func (c *pollingClient) taken(ctx context.Context, look *looking, k call) (t Taken, err error) {
	if c.begin == nil {
		answer, err := look.alone.Run(ctx, c.ackClient, k.keys, k.args...).Slice()
		if len(answer) == 2 {
			t.Task, _ = answer[0].(string)
			left, _ := answer[1].(int64)
			t.Left = int(left)
		}
		return t, err
	}
	queue := queueOf(k.keys[0])
	t, err = c.begin(ctx, Take{Queue: queue, Lua: look.lua, Keys: k.keys, Values: k.values()})
	if t.Begun != nil {
		c.begun.Store(taskKey(queue, t.ID), t.Begun)
	}
	return t, err
}

// run makes a call, if it has to be made, and announces a task that it put into a pending list.
func (c *pollingClient) run(ctx context.Context, keys []string, args []any,
	call func() *redis.Cmd) *redis.Cmd {
	switch {
	case isBeat(keys, args):
		return c.beat(ctx, keys, args, call)
	case isForward(keys) && c.delayed.empty(ctx):
		return redis.NewCmdResult(int64(0), nil)
	case len(keys) == 1 && (strings.HasSuffix(keys[0], "}:aggregation_sets") ||
		!c.chores && strings.HasSuffix(keys[0], "}:lease")):
		return redis.NewCmdResult([]any{}, nil) // nothing is aggregated; another server looks for expired leases
	}
	at := slices.IndexFunc(keys, isPending)
	if at < 0 {
		return call()
	}
	cmd := call()
	if cmd.Err() == nil && !isNothing(cmd) {
		_ = c.Publish(ctx, wakeTopic, keys[at]).Err() // else it is found within lookEvery
	}
	return cmd
}
