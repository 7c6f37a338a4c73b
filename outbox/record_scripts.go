package outbox

import (
	_ "embed"

	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/suppression"
)

//go:embed lua/prelude.lua
var prelude string

//go:embed lua/accept.lua
var acceptLua string

//go:embed lua/share.lua
var shareLua string

//go:embed lua/claim.lua
var claimLua string

//go:embed lua/begin.lua
var beginLua string

//go:embed lua/doubt.lua
var doubtLua string

//go:embed lua/progress.lua
var progressLua string

//go:embed lua/unhold.lua
var unholdLua string

//go:embed lua/extend.lua
var extendLua string

//go:embed lua/finish.lua
var finishLua string

//go:embed lua/cancel.lua
var cancelLua string

//go:embed lua/reopen.lua
var reopenLua string

//go:embed lua/bury.lua
var buryLua string

//go:embed lua/lapse.lua
var lapseLua string

//go:embed lua/ripen.lua
var ripenLua string

//go:embed lua/owed.lua
var owedLua string

//go:embed lua/rewake.lua
var rewakeLua string

//go:embed lua/learn.lua
var learnLua string

//go:embed lua/skip.lua
var skipLua string

//go:embed lua/purge.lua
var purgeLua string

//go:embed lua/indexed.lua
var indexedLua string

// The transitions.
var (
	acceptScript   = redisdb.NewRawScript("outbox/accept", acceptLua, prelude, suppression.LookLua)
	shareScript    = redisdb.NewRawScript("outbox/share", shareLua, prelude)
	claimScript    = redisdb.NewRawScript("outbox/claim", claimLua, prelude)
	beginScript    = redisdb.NewRawScript("outbox/begin", beginLua, prelude)
	doubtScript    = redisdb.NewRawScript("outbox/doubt", doubtLua, prelude)
	progressScript = redisdb.NewRawScript("outbox/progress", progressLua, prelude)
	unholdScript   = redisdb.NewRawScript("outbox/unhold", unholdLua, prelude)
	extendScript   = redisdb.NewRawScript("outbox/extend", extendLua, prelude)
	finishScript   = redisdb.NewRawScript("outbox/finish", finishLua, prelude)
	cancelScript   = redisdb.NewRawScript("outbox/cancel", cancelLua, prelude)
	reopenScript   = redisdb.NewRawScript("outbox/reopen", reopenLua, prelude)
	buryScript     = redisdb.NewRawScript("outbox/bury", buryLua, prelude)
	lapseScript    = redisdb.NewRawScript("outbox/lapse", lapseLua, prelude)
	ripenScript    = redisdb.NewRawScript("outbox/ripen", ripenLua, prelude)
	owedScript     = redisdb.NewRawScript("outbox/owed", owedLua, prelude)
	rewakeScript   = redisdb.NewRawScript("outbox/rewake", rewakeLua, prelude)
	learnScript    = redisdb.NewRawScript("outbox/learn", learnLua, prelude)
	skipScript     = redisdb.NewRawScript("outbox/skip", skipLua, prelude)
	purgeScript    = redisdb.NewRawScript("outbox/purge", purgeLua, prelude)
	indexedScript  = redisdb.NewRawScript("outbox/indexed", indexedLua, prelude)
)

// The states of a live message as the record has them. Paused is not one of them: it is how a waiting message
// reads.
const (
	stateWaiting = "waiting"
	stateActive  = "active"
	stateDelayed = "delayed"
	stateFailed  = "failed"
)
