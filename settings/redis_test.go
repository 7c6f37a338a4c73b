package settings

import (
	"context"
	"io"

	"github.com/redis/go-redis/v9"
)

// failing is a Redis that tells it was asked, and fails.
type failing struct{ asked func() }

func (f failing) HGetAll(ctx context.Context, _ string) *redis.MapStringStringCmd {
	f.asked()
	cmd := redis.NewMapStringStringCmd(ctx)
	cmd.SetErr(io.EOF)
	return cmd
}

func (f failing) HSet(ctx context.Context, _ string, _ ...any) *redis.IntCmd {
	cmd := redis.NewIntCmd(ctx)
	cmd.SetErr(io.EOF)
	return cmd
}
