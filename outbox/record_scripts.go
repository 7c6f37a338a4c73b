package outbox

import (
	"context"
	"embed"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
)

//go:embed lua
var files embed.FS

// lua returns a script of this package.
func lua(name string) string { return redisdb.Source(files, "lua/"+name+".lua") }

var prelude = lua("prelude")

// The transitions of a message. The comments of each script explain its fields.
var (
	acceptScript = redisdb.NewScript[acceptArgs, accepted]("outbox/accept", lua("accept"), prelude,
		suppression.LookLua, queue.StepLua)
	mailingScript  = redisdb.NewScript[mailingArgs, outcomeWord]("outbox/mailing", lua("mailing"), prelude)
	reserveScript  = redisdb.NewScript[reserveArgs, reserved]("outbox/reserve", lua("reserve"), prelude)
	shareScript    = redisdb.NewScript[shareArgs, int]("outbox/share", lua("share"), prelude)
	claimScript    = redisdb.NewScript[claimKeyArgs, outcomeWord]("outbox/claim", lua("claim"), prelude)
	blockKeyScript = redisdb.NewScript[blockKeyArgs, blocked]("outbox/block_key", lua("block_key"), prelude)
	beginScript    = redisdb.NewScript[beginArgs, begun]("outbox/begin", lua("begin"), prelude)
	doubtScript    = redisdb.NewScript[doubtArgs, time.Time]("outbox/doubt", lua("doubt"), prelude)
	progressScript = redisdb.NewScript[progressArgs, bool]("outbox/progress", lua("progress"), prelude)
	finishScript   = redisdb.NewScript[finishArgs, finished]("outbox/finish", lua("finish"), queue.StepLua,
		prelude)
	extendScript       = redisdb.NewScript[extendArgs, []string]("outbox/extend", lua("extend"), prelude)
	cancelScript       = redisdb.NewScript[cancelArgs, outcomeWord]("outbox/cancel", lua("cancel"), prelude)
	reopenScript       = redisdb.NewScript[reopenArgs, woken]("outbox/reopen", lua("reopen"), prelude)
	expireLeasesScript = redisdb.NewScript[sweepArgs, []wakeup]("outbox/expire_leases",
		lua("expire_leases"), prelude)
	promoteScript = redisdb.NewScript[promoteArgs, int]("outbox/promote", lua("promote"), prelude)
	unholdScript  = redisdb.NewScript[unholdArgs, []wakeup]("outbox/unhold", lua("unhold"), prelude)
	shiftScript   = redisdb.NewScript[shiftArgs, int]("outbox/shift", lua("shift"), prelude)
	followScript  = redisdb.NewScript[followArgs, []wakeup]("outbox/follow", lua("follow"), prelude)
	owedScript    = redisdb.NewScript[owedArgs, []wakeup]("outbox/owed", lua("owed"), prelude)
	rewakeScript  = redisdb.NewScript[rewakeArgs, string]("outbox/rewake", lua("rewake"), prelude)
	factScript    = redisdb.NewScript[factArgs, outcomeWord]("outbox/fact", lua("fact"), prelude)
	skipScript    = redisdb.NewScript[skipArgs, accepted]("outbox/skip", lua("skip"), prelude)
	eraseScript   = redisdb.NewScript[eraseArgs, outcomeWord]("outbox/erase", lua("erase"), prelude)
	expungeScript = redisdb.NewScript[expungeArgs, int]("outbox/expunge", lua("expunge"), prelude)
	purgeScript   = redisdb.NewScript[purgeArgs, int]("outbox/purge", lua("purge"), prelude)
	ratesScript   = redisdb.NewScript[ratesArgs, outcomeWord]("outbox/rates", lua("rates"), prelude)
	resealScript  = redisdb.NewScript[resealArgs, bool]("outbox/reseal", lua("reseal"), prelude)
	indexedScript = redisdb.NewScript[[]string, int]("outbox/indexed", lua("indexed"), prelude)
)

// The arguments and answers of the scripts, by the names that the scripts declare.
type (
	acceptArgs struct {
		ID, Account, Gateway, Envelope, Shared, Epoch, Event string
		Rank, Made                                           int `lua:",omitzero"`
		Now                                                  time.Time
		Deadline                                             string
		Due                                                  int64
		Lane                                                 api.Lane
		Max                                                  int
		Content                                              []byte
		Fingerprint, Memo, Merge, LiveMost, MemoryShare      string
		Window                                               int
		Size                                                 int
		Token, Day, Quotas, Partitions, Addressed            string
		Reservation                                          string
		KeepAddressed                                        int
		Enqueue, Task, Tasks, Enqueue1, Enqueue2, Enqueue3   string
		LookEach                                             int `lua:",omitzero"`
		LookFields                                           []string
	}
	// First is the first answer to an idempotency key, State the status of that message. With the word FULL,
	// First names the full limit; with OVER, see the prelude.
	accepted    struct{ Word, First, State string }
	mailingArgs struct{ Mailing, Name string }
	// First is accepted's.
	reserved struct {
		Word, First string
		Messages    int
	}
	reserveArgs struct {
		Account, Token, Day, Quotas, Partitions string
		Most                                    int
	}
	shareArgs struct {
		Name    string
		Content []byte
	}
	blockKeyArgs struct{ KeepKey int }
	blocked      struct{ Word, First string }
	claimKeyArgs struct {
		Fingerprint string
		KeepKey     int
	}
	beginArgs struct {
		ID              string
		Now, LeaseUntil time.Time
		ContentMost     int
		Window          int
		TakeKeys        int `lua:",omitzero"`
		Takes           []string
	}
	begun struct {
		Word, Task, TaskID                     string
		Left                                   int
		Fence, Gateway, Lapsed, Reservation    string
		Attempts, Max, Lost, Doubts, OldDoubts int
		Began, Due, Lease                      time.Time
		Created, Scheduled                     int64
		Lane                                   api.Lane
		Envelope, Content, Status, Shared      string
		Urgent, Cleared, Passes                bool
	}
	doubtArgs struct {
		Now   time.Time
		Fence string
	}
	progressArgs struct {
		ID, Fence, Status, Event string
		Transaction              int
	}
	finishArgs struct {
		ID, Fence, Status, Record, Lapsed, Reservation, Reason, Text, References string
		Now, Due                                                                 time.Time
		Outcome                                                                  outcome
		Hold, Line                                                               string
		Window                                                                   int
		Contended                                                                bool
		LineDue                                                                  time.Time
		Attempts, KeepKey                                                        int
		KeepContent                                                              int `lua:",omitzero"`
		Attempted, InDoubt                                                       bool
		DialogueOf                                                               int
		Dialogue                                                                 []byte
		Tasks, TaskPrefix, TaskHead, TaskTail, TaskNow                           string
		Acks                                                                     int `lua:",omitzero"`
		Events                                                                   []string
	}
	finished struct {
		Word, State, Followers string
		Acknowledged           bool
	}
	ratesArgs struct {
		Former, Last      string
		Events, PartsMost int
		Cells             []string
	}
	extendArgs struct {
		LeaseUntil time.Time
		Held       []string
	}
	cancelArgs struct {
		ID, State, Fence, Result, Record, Status, Counter string
		Now                                               time.Time
		TakenBack                                         bool
		KeepKey                                           int
		Events                                            []string
	}
	reopenArgs struct {
		ID, State, Fence, Gateway, Status, Envelope, Account string
		Now                                                  time.Time
		Due, Scheduled                                       int64
		Attempts, Max                                        int
		Quotas, Partitions, Addressed                        string
		KeepAddressed                                        int
		Urgent                                               bool
		Event, Undone                                        string
	}
	woken     struct{ Word, Epoch, First string }
	sweepArgs struct {
		Now  time.Time
		Most int
	}
	promoteArgs struct {
		Now          time.Time
		Most, Window int
	}
	unholdArgs struct {
		Hold      string
		Now, Due  time.Time
		Most      int
		Contended bool
	}
	shiftArgs struct {
		Hold, To, Reason string
		Most             int
	}
	followArgs struct {
		Lane    api.Lane
		Account string
		Now     time.Time
		Window  int
	}
	owedArgs struct {
		Before time.Time
		Most   int
	}
	rewakeArgs struct {
		ID, Epoch string
		Now       time.Time
	}
	factArgs struct {
		ID, Field, Fact, Account, Counter, Once, Event string
		Now                                            time.Time
		Lane                                           api.Lane
		FactsMost                                      int
		Created                                        int64
		Outcome                                        api.MessageStatus
		Weight                                         int
	}
	skipArgs struct {
		ID, Account, Record, Fingerprint, Memo, Merge string
		Now                                           time.Time
		Lane                                          api.Lane
		Refuse                                        bool
		KeepKey, KeepAddressed                        int
		Addressed                                     string
		Events                                        []string
	}
	eraseArgs struct {
		ID, State, Fence, Envelope, Status string
		Events                             []string
	}
	expungeArgs struct {
		ID, Result, Account, Reference, Record string
		Lane                                   api.Lane
	}
	purgeArgs struct {
		Before     time.Time
		Keep, Most int
	}
	resealArgs struct {
		ID            string
		Former, Value []byte
		Field, Letter string
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

// The states of a live message in its record. Paused is not one of them: a waiting message of a paused lane
// is shown so.
const (
	stateWaiting   = "waiting"
	stateActive    = "active"
	stateScheduled = "scheduled"
	stateDelayed   = "delayed"
	stateFailed    = "failed"
)
