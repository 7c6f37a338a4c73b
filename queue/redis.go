package queue

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// The keys of asynq 0.26 (its internal/base/base.go) that our scripts use. All keys of a queue have the tag
// {queue}, and so share one slot of a Redis Cluster.
const (
	allQueuesKey = "asynq:queues"              // SET of queue names: what the dashboard takes for existing
	prunedKey    = "postroom:{0}:queue:pruned" // STRING, ours: set while no process needs to prune
	cancelTopic  = "asynq:cancel"              // pub/sub channel of task ids whose handlers are to be cancelled
)

func queueKey(queue, part string) string    { return "asynq:{" + queue + "}:" + part }
func taskPrefix(queue string) string        { return queueKey(queue, "t:") }
func taskKey(queue, id string) string       { return taskPrefix(queue) + id }
func pausedKey(queue string) string         { return queueKey(queue, "paused") }
func leaseKey(queue string) string          { return queueKey(queue, "lease") }
func stateKey(queue string, s State) string { return queueKey(queue, string(s)) }

// errNotExecuted is the outcome of an enqueue in a pipeline that was not executed.
var errNotExecuted = errors.New("the pipeline was not executed")

//go:embed reap.lua
var reapSource string

//go:embed counts.lua
var countsSource string

//go:embed move.lua
var moveSource string

//go:embed trim.lua
var trimSource string

//go:embed mend.lua
var mendSource string

//go:embed memory.lua
var memorySource string

var (
	reapScript   = redis.NewScript(reapSource)
	moveScript   = redis.NewScript(moveSource)
	trimScript   = redis.NewScript(trimSource)
	mendScript   = redis.NewScript(mendSource)
	memoryScript = redis.NewScript(memorySource)
)

// register adds the queues to asynq's list of queues. It is repeated forever: after a FLUSHALL, or the
// deletion of a queue, asynq itself would continue to work but show nothing.
func register(ctx context.Context, c redis.UniversalClient, queues []string) error {
	members := make([]any, len(queues))
	for i, q := range queues {
		members[i] = q
	}
	if err := c.SAdd(ctx, allQueuesKey, members...).Err(); err != nil {
		return fmt.Errorf("register queues in %s: %w", allQueuesKey, err)
	}
	return nil
}

// masterOf returns the connection to the node of a queue, for commands such as SCAN that a Cluster cannot
// route by key.
func masterOf(ctx context.Context, c redis.UniversalClient, queue string) (redis.Cmdable, error) {
	cluster, ok := c.(*redis.ClusterClient)
	if !ok {
		return c, nil
	}
	return cluster.MasterForKey(ctx, queueKey(queue, "t:"))
}
