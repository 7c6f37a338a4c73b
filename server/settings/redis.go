package settings

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/redisdb"
)

//go:embed replace.lua
var replaceSource string

var replaceScript = redisdb.NewRawScript("settings/replace", replaceSource)

func settingsKey() string { return redisdb.Key(0, "settings") }

// store is what Redis keeps of the settings.
type store struct {
	client  hashes
	scripts redisdb.Evaler
}

// hashes is as much of Redis as the settings need. Any client has it.
type hashes interface {
	HGetAll(ctx context.Context, key string) *redis.MapStringStringCmd
	HSet(ctx context.Context, key string, values ...any) *redis.IntCmd
}

// replace changes the stored form of a setting, if it still is the one given; false means that it is not.
func (s store) replace(ctx context.Context, name, before, after string) (bool, error) {
	n, err := replaceScript.Run(ctx, s.scripts, []string{settingsKey()}, name, before, after).Int()
	return n == 1, err
}
