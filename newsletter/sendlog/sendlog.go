package sendlog

import (
	"cmp"
	"context"
	"embed"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua/*.lua
var lua embed.FS

var prelude = redisdb.Source(lua, "lua/prelude.lua")

var (
	claimScript   = script[claimArgs, claimed]("claim")
	markScript    = script[markArgs, []marked]("mark")
	settleScript  = script[settleArgs, changes]("settle")
	closeScript   = script[closeArgs, ended]("close")
	lapseScript   = script[lapseArgs, lapsed]("lapse")
	renewScript   = script[renewArgs, word]("renew")
	gateScript    = script[gateArgs, word]("gate")
	noteScript    = script[noteArgs, noted]("note")
	recountScript = script[recountArgs, recounted]("recount")
	forgetScript  = script[forgetArgs, word]("forget")
)

func script[A, R any](name string) *redisdb.Script[A, R] {
	return redisdb.NewScript[A, R]("sendlog/"+name, redisdb.Source(lua, "lua/"+name+".lua"), prelude)
}

type claimArgs struct {
	Version  int `lua:",omitzero"`
	From, To int
	Last     bool
	Again    time.Time `lua:",omitzero"`
	Most     int
	Lease    int64 // milliseconds
	Groups   string
	Offsets  []string
}

type claimed struct {
	Word  string
	At    int
	Sheet string
	Gate  string
	Taken string
}

type markArgs struct{ Marks []string }

type marked struct {
	Word      string
	Remaining int64 // milliseconds
}

// marking is a mark, and until when it counts.
type marking struct {
	word  Marking
	until time.Time
}

type settleArgs struct {
	Keep  int
	Moves []string
}

type changes struct{ Word, Changed string }

type closeArgs struct {
	Sheet   string
	Tallies []string
}

type ended struct {
	Word string
	Back int
}

type lapseArgs struct{ Doubt int }

type lapsed struct {
	Word         string
	Back, Doubts int
}

type renewArgs struct {
	Lease  int64
	Sheets []string
}

type gateArgs struct {
	Version int
	Open    bool
}

type noteArgs struct{ Notes []string }

type noted struct{ Word, Fresh string }

type forgetArgs struct {
	Offset int
	Bits   []string
}

type recountArgs struct{ Bits []string }

type recounted struct {
	Word    string
	Changed int
}

type word struct{ Word string }

// Log is the send log of all runs. It is safe for concurrent use.
type Log struct {
	db    *redisdb.DB
	lease time.Duration

	marks   *redisdb.Group[markKey, []string, marking]
	results *redisdb.Group[place, Move, bool]
}

// place is a chunk of a run.
type place struct {
	run   Run
	chunk int
}

type markKey struct {
	place
	version string // key of the version of the suppressions
}

// New returns the log. lease is how long a sheet stays without being renewed; 0: 20 s.
func New(db *redisdb.DB, lease time.Duration) *Log {
	if lease <= 0 {
		lease = 20 * time.Second
	}
	l := &Log{db: db, lease: lease}
	l.marks, l.results = redisdb.NewGroup(l.mark), redisdb.NewGroup(l.record)
	return l
}

// Lease returns how long a sheet stays without being renewed.
func (l *Log) Lease() time.Duration { return l.lease }

// Open lets people of a run be marked. version orders changes of the gate: one below the last is ignored.
func (l *Log) Open(ctx context.Context, r Run, version int) error {
	return l.gate(ctx, r, version, true)
}

// Shut makes marks of a run fail. When it has returned, none that succeeds begins.
func (l *Log) Shut(ctx context.Context, r Run, version int) error {
	return l.gate(ctx, r, version, false)
}

func (l *Log) gate(ctx context.Context, r Run, version int, open bool) error {
	pipe := l.db.ReplicatedPipeline()
	for shard := range shards {
		gateScript.Add(pipe, []string{gateKey(r, shard)}, gateArgs{Version: version, Open: open})
	}
	return redisdb.Failed(pipe.Exec(ctx), "open or shut run %s", r)
}

// Claim is what a worker found in a chunk.
type Claim struct {
	Version  int       // of the gate that it knows: of another one it gets nothing; 0: any
	From, To int       // it looked at all offsets from From up to, not including, To
	Offsets  []int     // of people to be mailed among these, in order
	Groups   []Group   // of each of them; empty: people have no groups
	Last     bool      // the chunk ends at To
	Again    time.Time // people among them were left out until then; zero: none were
	Most     int       // people of a sheet
}

// Sheet is a number of people of a chunk that one worker sends to.
type Sheet struct {
	Run     Run
	Chunk   int
	Offsets []int
	number  string
	gate    string // as it was when the sheet was taken
}

// Claim takes the first of the offsets whose people wait as a sheet. at is how far the chunk was walked then.
// moved: it was walked to another place than c.From before, and nothing was taken. shut: so is the gate. The
// sheet is nil if nobody was taken.
func (l *Log) Claim(ctx context.Context, r Run, chunk int, c Claim) (s *Sheet, at int, moved, shut bool,
	err error) {
	args := claimArgs{Version: c.Version, From: c.From, To: c.To, Last: c.Last, Again: c.Again, Most: c.Most,
		Lease: l.lease.Milliseconds(), Offsets: make([]string, len(c.Offsets))}
	for i, offset := range c.Offsets {
		args.Offsets[i] = strconv.Itoa(offset)
	}
	args.Groups = letters(c.Groups)
	answer, err := claimScript.RunReplicated(ctx, l.db, []string{logKey(r, chunk), gateKey(r, chunk%shards)},
		args)
	if err != nil {
		return nil, 0, false, false, redisdb.Failed(err, "claim people of run %s", r)
	}
	switch answer.Word {
	case "CLOSED":
		return nil, c.From, false, true, nil
	case "MOVED":
		return nil, answer.At, true, false, nil
	case "NONE":
		return nil, answer.At, false, false, nil
	}
	return &Sheet{Run: r, Chunk: chunk, Offsets: numbers(answer.Taken), number: answer.Sheet,
			gate: answer.Gate}, answer.At, false,
		false, nil
}

func numbers(text string) []int {
	fields := strings.Fields(text)
	list := make([]int, len(fields))
	for i, f := range fields {
		list[i], _ = strconv.Atoi(f) // written by a script
	}
	return list
}

// Marking is the answer to a mark.
type Marking string

// The answers.
const (
	Go      Marking = "GO"      // write the dot
	Shut    Marking = "CLOSED"  // the gate was shut since the sheet was taken
	Lost    Marking = "LOST"    // the sheet is another's
	Changed Marking = "CHANGED" // somebody was suppressed since: ask again, and mark again
)

// Mark notes that the final dot to the person at an offset is about to be written. version is that of the
// suppressions when they were asked, and versionKey its key; empty: they were asked right now. until is when
// the lease of the sheet ends, by the machine's clock. Marks that wait together are set together.
func (l *Log) Mark(ctx context.Context, s *Sheet, offset int, versionKey, version string) (m Marking,
	until time.Time, err error) {
	answer, err := l.marks.Do(ctx, markKey{place{s.Run, s.Chunk}, versionKey},
		[]string{s.number, strconv.Itoa(offset), s.gate, version})
	if err != nil {
		return Lost, time.Now(), err
	}
	return answer.word, answer.until, nil
}

// mark sets marks.
func (l *Log) mark(ctx context.Context, k markKey, all [][]string) ([]marking, error) {
	keys := []string{logKey(k.run, k.chunk), gateKey(k.run, k.chunk%shards)}
	if k.version != "" {
		keys = append(keys, k.version)
	}
	now := time.Now()
	rows, err := markScript.RunReplicated(ctx, l.db, keys, markArgs{Marks: slices.Concat(all...)})
	if err != nil {
		return nil, redisdb.Failed(err, "mark %d people of run %s", len(all), k.run)
	}
	answers := make([]marking, len(rows))
	for i, row := range rows {
		answers[i] = marking{Marking(row.Word), now.Add(time.Duration(row.Remaining) * time.Millisecond)}
	}
	return answers, nil
}

// Move is a change of a person's state.
type Move struct {
	Offset int
	To     State
	Why    string // the last reply, of those that did not end well; empty: none is kept

	Attempts int       // made, or since a replay; 0: as before, [OneMore]: one more than before
	At       time.Time // time of the last attempt; zero: now

	sheet string // of the person; empty: any
	from  string // letters of the states that it is for; empty: all that may be followed
}

// OneMore is the Attempts of a move after one more attempt, anew that of a replay.
const OneMore, anew = -1, -2

// mostReplies is how many replies are kept of a chunk: a campaign to 10 million keeps 100,000 at least.
const mostReplies = 6400

// Settle changes the states of people of a chunk, each if its state may be followed by the new one. It
// returns which were changed. To repeat it does no harm. Workers of sheets use Record.
func (l *Log) Settle(ctx context.Context, r Run, chunk int, moves ...Move) ([]bool, error) {
	return l.record(ctx, place{r, chunk}, moves)
}

// Record is Settle for the worker of a sheet. If the sheet has ended, its people may be another's, and only
// Sent changes their states. So who was put off is deferred only if Record says so. Single results that wait
// together are recorded together.
func (l *Log) Record(ctx context.Context, s *Sheet, moves ...Move) ([]bool, error) {
	at := place{s.Run, s.Chunk}
	for i := range moves {
		moves[i].sheet = s.number
	}
	if len(moves) != 1 {
		return l.record(ctx, at, moves)
	}
	done, err := l.results.Do(ctx, at, moves[0])
	return []bool{done}, err
}

// record changes states.
func (l *Log) record(ctx context.Context, at place, moves []Move) ([]bool, error) {
	if len(moves) == 0 {
		return nil, nil
	}
	args := settleArgs{Keep: mostReplies, Moves: make([]string, 0, 7*len(moves))}
	for _, m := range moves {
		args.Moves = append(args.Moves, m.sheet, strconv.Itoa(m.Offset), strconv.Itoa(int(m.To)),
			cmp.Or(m.from, letters(before[m.To])), m.Why, strconv.Itoa(m.Attempts),
			strconv.FormatInt(cmp.Or(m.At, time.Now()).UnixMilli(), 10))
	}
	answer, err := settleScript.RunReplicated(ctx, l.db, []string{logKey(at.run, at.chunk)}, args)
	if err != nil {
		return nil, redisdb.Failed(err, "settle people of run %s", at.run)
	}
	done := make([]bool, len(moves))
	for i := range done {
		done[i] = i < len(answer.Changed) && answer.Changed[i] == '1'
	}
	return done, nil
}

// Close ends a sheet: people without a result wait again. tallies are added to the counters of the chunk, if
// the sheet had not ended before.
func (l *Log) Close(ctx context.Context, s *Sheet, tallies map[string]int) error {
	args := closeArgs{Sheet: s.number}
	for field, n := range tallies {
		args.Tallies = append(args.Tallies, field, strconv.Itoa(n))
	}
	_, err := closeScript.RunReplicated(ctx, l.db, []string{logKey(s.Run, s.Chunk)}, args)
	return redisdb.Failed(err, "close a sheet of run %s", s.Run)
}

// Renew makes the leases of sheets longer.
func (l *Log) Renew(ctx context.Context, sheets []*Sheet) error {
	byChunk := map[string][]string{}
	for _, s := range sheets {
		key := logKey(s.Run, s.Chunk)
		byChunk[key] = append(byChunk[key], s.number)
	}
	pipe := l.db.Pipeline()
	for key, all := range byChunk {
		renewScript.Add(pipe, []string{key}, renewArgs{Lease: l.lease.Milliseconds(), Sheets: all})
	}
	return redisdb.Failed(pipe.Exec(ctx), "renew the leases of %d sheets", len(sheets))
}

// Lapse ends the sheets of a chunk whose lease has ended. resend: people at the dot wait again; else they are
// in doubt. It returns how many people wait again, and how many are in doubt.
func (l *Log) Lapse(ctx context.Context, r Run, chunk int, resend bool) (back, doubts int, err error) {
	doubt := int(InDoubt)
	if resend {
		doubt = int(Waiting)
	}
	answer, err := lapseScript.RunReplicated(ctx, l.db, []string{logKey(r, chunk)}, lapseArgs{Doubt: doubt})
	return answer.Back, answer.Doubts, redisdb.Failed(err, "end sheets of run %s", r)
}
