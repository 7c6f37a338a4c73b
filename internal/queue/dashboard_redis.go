package queue

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// monConnections returns asynqmon its connections. asynqmon asks twice: first for the connection that it
// describes, and must recognize by its type, then for the one it reads queues with.
type monConnections struct {
	client redis.UniversalClient
	asked  bool
}

// MakeRedisClient implements asynq.RedisConnOpt.
func (m *monConnections) MakeRedisClient() any {
	if !m.asked {
		m.asked = true
		return m.client
	}
	return tolerant{m.client}
}

// tolerant is a connection on which asynq's statistics work despite a task without a hash. Such a task would
// make asynq's own memory estimate fail, and with it the page of every queue.
type tolerant struct{ redis.UniversalClient }

// EvalSha runs a script for asynq, and replaces the memory estimate by our own.
func (c tolerant) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if estimatesMemory(keys) {
		prefix, _ := args[0].(string)
		n, err := memoryScript.Run(ctx, c.UniversalClient, keys[:6], tasksArgs{prefix})
		return redis.NewCmdResult(n, err)
	}
	return c.UniversalClient.EvalSha(ctx, sha, keys, args...)
}

// estimatesMemory recognizes asynq's script by its keys: active, pending, …, groups, in that order, which
// no other script has.
func estimatesMemory(keys []string) bool {
	return len(keys) == 7 && strings.HasSuffix(keys[0], ":active") && strings.HasSuffix(keys[1], ":pending") &&
		strings.HasSuffix(keys[6], ":groups")
}
