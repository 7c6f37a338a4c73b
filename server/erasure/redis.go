package erasure

import (
	"embed"

	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua/*.lua
var lua embed.FS

var (
	startScript = redisdb.NewScript[startArgs, string]("erasure/start", redisdb.Source(lua, "lua/start.lua"))
	claimScript = redisdb.NewScript[claimArgs, leased]("erasure/claim", redisdb.Source(lua, "lua/claim.lua"))
	saveScript  = redisdb.NewScript[saveArgs, held]("erasure/save", redisdb.Source(lua, "lua/save.lua"))
)

type (
	startArgs struct{ ID, Record string }
	claimArgs struct{ Lease int64 }
	leased    struct{ Word, ID, Ends string }
	saveArgs  struct {
		ID, Held, Record string
		Lease, Keep      int64
	}
	held struct{ Word, Ends string }
)

func recordKey(id string) string { return redisdb.Key(0, "erasure", id) }
func runningKey() string         { return redisdb.Key(0, "erasures") }
func ofKey(hash string) string   { return redisdb.Key(0, "erasure-of", hash) }
