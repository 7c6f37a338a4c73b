package settings

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

var (
	//go:embed replace.lua
	replaceSource string
	//go:embed put.lua
	putSource string

	replaceScript = redisdb.NewScript[replaceArgs, bool]("settings/replace", replaceSource)
	putScript     = redisdb.NewScript[putArgs, bool]("settings/put", putSource)
)

type replaceArgs struct{ Name, Before, After string }

type putArgs struct {
	Webhooks, WebhooksBefore, Headers, HeadersBefore string
	Pairs                                            []string
}

func settingsKey() string { return redisdb.Key(0, "settings") }

// store is the client of Redis, in the parts that tests replace.
type store struct {
	client  hashes
	scripts redisdb.Evaler
}

// hashes are the commands that settings need. Any client of Redis has them.
type hashes interface {
	HGetAll(ctx context.Context, key string) *redis.MapStringStringCmd
}
