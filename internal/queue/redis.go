package queue

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// The keys of asynq 0.26 (its internal/base/base.go) that our scripts use. All keys of a queue have the tag
// {queue}, and so share one slot of a Redis Cluster.
const (
	allQueuesKey = "asynq:queues"               // SET of queue names that exist for the dashboard
	prunedKey    = "postroom:{0}:queue:pruned:" // STRING, ours: set while no process needs to prune
	recoveredKey = "postroom:{0}:queue:recovered:"
	cancelTopic  = "asynq:cancel" // pub/sub channel of task ids whose handlers must be cancelled
)

func queueKey(queue, part string) string    { return "asynq:{" + queue + "}:" + part }
func taskPrefix(queue string) string        { return queueKey(queue, "t:") }
func taskKey(queue, id string) string       { return taskPrefix(queue) + id }
func pausedKey(queue string) string         { return queueKey(queue, "paused") }
func leaseKey(queue string) string          { return queueKey(queue, "lease") }
func stateKey(queue string, s State) string { return queueKey(queue, string(s)) }

// queueOf returns the queue of a key.
func queueOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	name, _, _ := strings.Cut(rest, "}")
	return name
}

// errNotExecuted is the outcome of an enqueue in a pipeline that was not executed.
var errNotExecuted = errors.New("the pipeline was not executed")

//go:embed *.lua
var files embed.FS

func script[A, R any](name string) *redisdb.Script[A, R] {
	return redisdb.NewScript[A, R]("queue/"+name, redisdb.Source(files, name+".lua"))
}

// The comments of each script explain its fields.
var (
	countsScript = script[tasksArgs, counted]("counts")
	memoryScript = script[tasksArgs, int64]("memory")
	mendScript   = script[mendArgs, mended]("mend")
	moveScript   = script[moveArgs, []int]("move")
	reapScript   = script[reapArgs, reaped]("reap")
	trimScript   = script[trimArgs, int]("trim")
)

type (
	tasksArgs struct{ Tasks string }
	counted   struct {
		Word                                                      string
		Waiting, Active, Scheduled, Retrying, Archived, Completed int
		ProcessedTotal, FailedTotal                               int
		Paused                                                    bool
		Since, Due, PausedAt                                      int64
	}
	mendArgs struct {
		Tasks      string
		Now        int64
		Searchable int
		IDs        []string
	}
	mended struct {
		Word                       string
		Orphans, Returned, Unnamed int
	}
	moveArgs struct {
		Tasks         string
		Target        target
		Now, NowNanos int64
		Keep          int
		Span, Older   int
		IDs           []string
	}
	reapArgs struct {
		Silent int64
		Tasks  string
		Now    int64
		Most   int
	}
	reaped struct {
		Word              string
		Returned, Removed int64
	}
	trimArgs struct {
		Tasks      string
		Oldest     int64
		Keep, Most int
	}
)

// stateKeys returns the keys of the states.
func stateKeys(queue string, states ...State) []string {
	keys := make([]string, len(states), len(states)+3)
	for i, s := range states {
		keys[i] = stateKey(queue, s)
	}
	return keys
}

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
