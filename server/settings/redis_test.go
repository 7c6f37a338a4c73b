package settings

import (
	"context"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// failing is a Redis that reports that it was asked, and fails.
type failing struct{ asked func() }

func (f failing) HGetAll(ctx context.Context, _ string) *redis.MapStringStringCmd {
	f.asked()
	cmd := redis.NewMapStringStringCmd(ctx)
	cmd.SetErr(io.EOF)
	return cmd
}

// meddling is a Redis where something else happens before each script.
type meddling struct {
	redisdb.Evaler
	before func()
}

func (m meddling) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	m.before()
	return m.Evaler.EvalSha(ctx, sha, keys, args...)
}
