package suppression

import (
	"embed"

	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua/*.lua
var lua embed.FS

var (
	prelude = redisdb.Source(lua, "lua/prelude.lua")

	addScript = redisdb.NewScript[addArgs, int]("suppression/add", redisdb.Source(lua, "lua/add.lua"),
		prelude, LookLua)
	removeScript = redisdb.NewScript[removeArgs, int]("suppression/remove",
		redisdb.Source(lua, "lua/remove.lua"), prelude)
	eraseScript = redisdb.NewScript[eraseArgs, int]("suppression/erase", redisdb.Source(lua, "lua/erase.lua"),
		LookLua)
	sweepScript = redisdb.NewScript[sweepArgs, int]("suppression/sweep", redisdb.Source(lua, "lua/sweep.lua"),
		prelude)
	// softScript counts messages, also for Confirmed
	softScript = redisdb.NewScript[softArgs, int]("suppression/soft", redisdb.Source(lua, "lua/soft.lua"))
)

type addArgs struct {
	Now     string
	Entries []any // nine of each entry, which add.lua names
}

type removeArgs struct {
	Bucket int
	Field  string
	Scope  string
	Letter string
	Now    string
}

type eraseArgs struct {
	Field string
	Now   string
}

type sweepArgs struct {
	Group int
	Now   string
}

type softArgs struct {
	Now     string
	Since   string
	Tag     string
	Enough  int
	KeepFor int // seconds
}
