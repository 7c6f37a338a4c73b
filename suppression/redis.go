package suppression

import (
	_ "embed"

	"github.com/postroom/postroom/redisdb"
)

var (
	//go:embed lua/prelude.lua
	prelude string
	//go:embed lua/add.lua
	addSource string
	//go:embed lua/remove.lua
	removeSource string
	//go:embed lua/sweep.lua
	sweepSource string
	//go:embed lua/soft.lua
	softSource string

	addScript    = redisdb.NewRawScript("suppression/add", addSource, prelude, LookLua)
	removeScript = redisdb.NewRawScript("suppression/remove", removeSource, prelude)
	sweepScript  = redisdb.NewRawScript("suppression/sweep", sweepSource, prelude)
	softScript   = redisdb.NewRawScript("suppression/soft", softSource)
)
