package outbox

import (
	"context"
	"embed"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/suppression"
)

//go:embed lua
var files embed.FS

// lua returns a script of this package.
func lua(name string) string { return redisdb.Source(files, "lua/"+name+".lua") }

var prelude = lua("prelude")

// The transitions of a message. The comments of each script explain its fields.
var (
	acceptScript = redisdb.NewScript[acceptArgs, accepted]("outbox/accept", lua("accept"), prelude,
		suppression.LookLua)
	shareScript    = redisdb.NewScript[shareArgs, int]("outbox/share", lua("share"), prelude)
	claimScript    = redisdb.NewScript[claimKeyArgs, outcomeWord]("outbox/claim", lua("claim"), prelude)
	beginScript    = redisdb.NewScript[beginArgs, begun]("outbox/begin", lua("begin"), prelude)
	doubtScript    = redisdb.NewScript[doubtArgs, time.Time]("outbox/doubt", lua("doubt"), prelude)
	progressScript = redisdb.NewScript[progressArgs, bool]("outbox/progress", lua("progress"), prelude)
	finishScript   = redisdb.NewScript[finishArgs, finished]("outbox/finish", lua("finish"), prelude)
	extendScript   = redisdb.NewScript[extendArgs, []string]("outbox/extend", lua("extend"), prelude)
	cancelScript   = redisdb.NewScript[cancelArgs, outcomeWord]("outbox/cancel", lua("cancel"), prelude)
	reopenScript   = redisdb.NewScript[reopenArgs, woken]("outbox/reopen", lua("reopen"), prelude)
	buryScript     = redisdb.NewScript[buryArgs, outcomeWord]("outbox/bury", lua("bury"), prelude)
	lapseScript    = redisdb.NewScript[sweepArgs, []wakeup]("outbox/lapse", lua("lapse"), prelude)
	promoteScript  = redisdb.NewScript[sweepArgs, int]("outbox/promote", lua("promote"), prelude)
	unholdScript   = redisdb.NewScript[unholdArgs, []wakeup]("outbox/unhold", lua("unhold"), prelude)
	owedScript     = redisdb.NewScript[owedArgs, []wakeup]("outbox/owed", lua("owed"), prelude)
	rewakeScript   = redisdb.NewScript[rewakeArgs, string]("outbox/rewake", lua("rewake"), prelude)
	factScript     = redisdb.NewScript[factArgs, outcomeWord]("outbox/fact", lua("fact"), prelude)
	skipScript     = redisdb.NewScript[skipArgs, int]("outbox/skip", lua("skip"), prelude)
	purgeScript    = redisdb.NewScript[purgeArgs, int]("outbox/purge", lua("purge"), prelude)
	indexedScript  = redisdb.NewScript[[]string, int]("outbox/indexed", lua("indexed"), prelude)
)

// The arguments and answers of the scripts, by the names that the scripts declare.
type (
	acceptArgs struct {
		ID          string
		Now         time.Time
		Due         int64
		Lane        api.Lane
		Account     string
		Max         int
		Gateway     string
		Envelope    string
		Content     []byte
		LiveMost    string
		Fingerprint string
		Memo        string
		KeepKey     int
		MemoryShare string
		Shared      string
		Epoch       string
		Event       string
		LookEach    int `lua:",omitzero"`
		LookFields  []string
	}
	accepted struct {
		Word  string
		First string
		What  string
	}
	shareArgs struct {
		Name    string
		Content []byte
	}
	claimKeyArgs struct {
		Fingerprint string
		KeepKey     int
	}
	beginArgs struct {
		ID          string
		Now         time.Time
		LeaseUntil  time.Time
		ContentMost int
	}
	begun struct {
		Word                                    string
		Fence, Gateway, Lapsed, Reservation     string
		Attempts, Max, Lost, Doubts, OldDoubts  int
		Began, Scheduled, Due, Lease            time.Time
		Created                                 int64
		Envelope, Content, Status, Lane, Shared string
		Urgent, Cleared                         bool
	}
	doubtArgs struct {
		Now   time.Time
		Fence string
	}
	progressArgs struct {
		ID, Fence   string
		Transaction int
		Status      string
		Event       string
	}
	finishArgs struct {
		ID, Fence      string
		Now            time.Time
		Outcome        outcome
		Due            time.Time
		Attempts       int
		Attempted      bool
		Status, Record string
		InDoubt        bool
		Lapsed         string
		Reservation    string
		Reason         string
		Text           string
		References     string
		KeepReferences int
		Events         []string
	}
	finished struct {
		Word  string
		State string
	}
	extendArgs struct {
		LeaseUntil time.Time
		Held       []string
	}
	cancelArgs struct {
		ID             string
		Now            time.Time
		State, Fence   string
		Result, Record string
		Events         []string
	}
	buryArgs struct {
		ID             string
		Now            time.Time
		State, Fence   string
		Status, Record string
		Events         []string
	}
	reopenArgs struct {
		ID                string
		Now               time.Time
		State, Fence      string
		Due               int64
		Attempts, Max     int
		Gateway, Status   string
		Scheduled         int64
		Urgent            bool
		Envelope, Account string
		Events            []string
	}
	woken struct {
		Word  string
		Epoch string
	}
	sweepArgs struct {
		Now  time.Time
		Most int
	}
	unholdArgs struct {
		Account string
		Now     time.Time
		Most    int
	}
	owedArgs struct {
		Before time.Time
		Most   int
	}
	rewakeArgs struct {
		ID    string
		Now   time.Time
		Epoch string
	}
	factArgs struct {
		ID          string
		Now         time.Time
		Field, Fact string
		Lane        api.Lane
		Account     string
		FactsMost   int
		Counter     string
		Event       string
	}
	skipArgs struct {
		ID      string
		Now     time.Time
		Lane    api.Lane
		Account string
		Record  string
		Events  []string
	}
	purgeArgs struct {
		Before     time.Time
		Keep, Most int
	}
	// outcomeWord is an answer that has only a word.
	outcomeWord struct{ Word string }
)

// run runs a script about one message.
func run[A, R any](ctx context.Context, s *store, script *redisdb.Script[A, R], p int, id string, args A) (R,
	error) {
	answer, err := script.Run(ctx, s.DB.Shared(), []string{s.keys.message(p, id)}, args)
	if err != nil {
		err = redisError(err, script.Name()+" message "+id)
	}
	return answer, err
}

// sweepRun runs a script about a whole partition.
func sweepRun[A, R any](ctx context.Context, s *store, script *redisdb.Script[A, R], p int, args A) (R,
	error) {
	answer, err := script.Run(ctx, s.DB.Client(), []string{s.keys.events(p)}, args)
	if err != nil {
		err = fault.Wrap(err, fault.Unavailable, "", "sweep partition %d", p)
	}
	return answer, err
}

// The states of a live message in its record. Paused is not one of them: a waiting message of a paused lane is
// shown so.
const (
	stateWaiting = "waiting"
	stateActive  = "active"
	stateDelayed = "delayed"
	stateFailed  = "failed"
)
