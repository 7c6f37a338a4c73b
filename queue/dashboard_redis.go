package queue

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// monConnections gives asynqmon its connections. It asks twice: first for the one whose facts it shows, which it must recognise by its
// type, then for the one it reads queues with.
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

// tolerant is a connection on which asynq's statistics survive a task without a hash. asynq's script that estimates memory fails on one, and with
// it the page of every queue.
type tolerant struct{ redis.UniversalClient }

// EvalSha runs a script for asynq, the memory estimate by our own.
func (c tolerant) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if estimatesMemory(keys) {
		return memoryScript.Run(ctx, c.UniversalClient, keys[:6], args[0])
	}
	return c.UniversalClient.EvalSha(ctx, sha, keys, args...)
}

// estimatesMemory knows asynq's script by its keys: active, pending, …, groups, in that order, which no other has.
func estimatesMemory(keys []string) bool {
	return len(keys) == 7 && strings.HasSuffix(keys[0], ":active") && strings.HasSuffix(keys[1], ":pending") &&
		strings.HasSuffix(keys[6], ":groups")
}
