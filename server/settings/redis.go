package settings

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/redisdb"
)

//go:embed replace.lua
var replaceSource string

var replaceScript = redisdb.NewScript[replaceArgs, bool]("settings/replace", replaceSource)

type replaceArgs struct{ Name, Before, After string }

func settingsKey() string { return redisdb.Key(0, "settings") }

// store is the client of Redis, in the parts that tests replace.
type store struct {
	client  hashes
	scripts redisdb.Evaler
}

// hashes are the commands that settings need. Any client of Redis has them.
type hashes interface {
	HGetAll(ctx context.Context, key string) *redis.MapStringStringCmd
	HSet(ctx context.Context, key string, values ...any) *redis.IntCmd
}
