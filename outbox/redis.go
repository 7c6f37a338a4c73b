package outbox

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/fault"
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
	acceptScript   = redisdb.NewScript("outbox/accept", acceptLua, prelude, suppression.LookLua)
	shareScript    = redisdb.NewScript("outbox/share", shareLua, prelude)
	claimScript    = redisdb.NewScript("outbox/claim", claimLua, prelude)
	beginScript    = redisdb.NewScript("outbox/begin", beginLua, prelude)
	doubtScript    = redisdb.NewScript("outbox/doubt", doubtLua, prelude)
	progressScript = redisdb.NewScript("outbox/progress", progressLua, prelude)
	unholdScript   = redisdb.NewScript("outbox/unhold", unholdLua, prelude)
	extendScript   = redisdb.NewScript("outbox/extend", extendLua, prelude)
	finishScript   = redisdb.NewScript("outbox/finish", finishLua, prelude)
	cancelScript   = redisdb.NewScript("outbox/cancel", cancelLua, prelude)
	reopenScript   = redisdb.NewScript("outbox/reopen", reopenLua, prelude)
	buryScript     = redisdb.NewScript("outbox/bury", buryLua, prelude)
	lapseScript    = redisdb.NewScript("outbox/lapse", lapseLua, prelude)
	ripenScript    = redisdb.NewScript("outbox/ripen", ripenLua, prelude)
	owedScript     = redisdb.NewScript("outbox/owed", owedLua, prelude)
	rewakeScript   = redisdb.NewScript("outbox/rewake", rewakeLua, prelude)
	learnScript    = redisdb.NewScript("outbox/learn", learnLua, prelude)
	skipScript     = redisdb.NewScript("outbox/skip", skipLua, prelude)
	purgeScript    = redisdb.NewScript("outbox/purge", purgeLua, prelude)
	indexedScript  = redisdb.NewScript("outbox/indexed", indexedLua, prelude)
)

// The states of a live message as the record has them. Paused is not one of them: it is how a waiting message reads.
const (
	stateWaiting = "waiting"
	stateActive  = "active"
	stateDelayed = "delayed"
	stateFailed  = "failed"
)

// store knows the keys of the outbox and runs its scripts.
type store struct{ db *redisdb.DB }

func (s store) message(p int, id string) string     { return redisdb.Key(p, "message", id) }
func (s store) envelope(p int, id string) string    { return redisdb.Key(p, "envelope", id) }
func (s store) content(p int, id string) string     { return redisdb.Key(p, "content", id) }
func (s store) texts(p int) string                  { return redisdb.Key(p, "texts") }
func (s store) letter(p int, name string) string    { return redisdb.Key(p, "letter", name) }
func (s store) incoming(p int, id string) string    { return redisdb.Key(p, "incoming", id) }
func (s store) later(p int, id string) string       { return redisdb.Key(p, "later", id) }
func (s store) reference(p int, hash string) string { return redisdb.Key(p, "reference", hash) }
func (s store) status(p int, id string) string      { return redisdb.Key(p, "status", id) }
func (s store) ended(p int, id string) string       { return redisdb.Key(p, "ended", id) }
func (s store) index(p int, lane, st string) string { return redisdb.Key(p, "index", lane, st) }
func (s store) logged(p int, lane, result string) string {
	return redisdb.Key(p, "log", lane, result)
}

// of is the part of an index, or of a counter, that is about one account; all of it when none is named.
func of(key, account string) string {
	if account == "" {
		return key
	}
	return key + ":" + account
}
func (s store) idempotency(p int, hash string) string { return redisdb.Key(p, "idempotency", hash) }
func (s store) events(p int) string                   { return redisdb.Key(p, "events") }
func (s store) held(p int) string                     { return redisdb.Key(p, "held") }
func (s store) stats(p int, hour int64) string {
	return redisdb.Key(p, "stats", strconv.FormatInt(hour, 10))
}

// place finds the partition of a message. What can't be an id is as unknown as an id that was never given out.
func (s store) place(id string) (int, error) {
	p, ok := partitionOf(id, s.db.Partitions())
	if !ok {
		return 0, unknownMessage(id)
	}
	return p, nil
}

// run runs a script about one message and reads its answer, a list of strings whose first says how it went.
func (s store) run(ctx context.Context, script *redisdb.Script, p int, id string, args ...any) ([]string, error) {
	return s.runOn(ctx, script, []string{s.message(p, id)}, id, args...)
}

// runOn is run for a script that takes more keys than that of the message.
func (s store) runOn(ctx context.Context, script *redisdb.Script, keys []string, id string, args ...any) ([]string, error) {
	answer, err := script.Run(ctx, s.db.Shared(), keys, args...).StringSlice()
	if err != nil {
		return nil, away(err, fmt.Sprintf("%s message %s", script.Name(), id))
	}
	return answer, nil
}

// away tells Redis being away from a fault of ours.
func away(err error, doing string) error {
	if redisdb.Unavailable(err) {
		f := fault.Wrap(fmt.Errorf("%s: %w", doing, err), fault.Unavailable, "RedisAway", "The message store is not available; try again shortly")
		f.RetryAfter = retryAfterOutage
		return f
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// unknownMessage is the answer about an id nobody knows.
func unknownMessage(id string) error {
	return fault.New(fault.NotFound, "MessageNotFound", "No message with queueId %q", id)
}

// texts reads replies that may be nil as strings.
func texts(cmd *redis.SliceCmd) []string {
	values := cmd.Val()
	out := make([]string, len(values))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out
}
