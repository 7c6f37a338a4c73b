package sendlog

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// world is all there is in a history, and what really happened in it.
type world struct {
	*bench
	ctx    context.Context
	chance *rand.Rand
	flaw   flaw
	resend bool

	run    Run
	chunk  int
	people int
	groups int // that people are counted in; 0 if none

	tick   int
	quiet  bool // nothing fails any more
	over   bool // the run has ended
	actors []*actor
	procs  []*proc
	ghosts []func()       // calls that are to arrive once more
	epoch  map[string]int // how often the lease of a batch ended

	persons  []person
	deniedAt int // since when permission is denied; 0 if it may be given
	risk     int // how many people may be in doubt
	risky    map[doubtful]bool
	outbox   map[int]*mail
	events   []Move // from the outbox, not applied yet
	wrong    error
	notes    []string
	tally
}

// person is what really became of a person.
type person struct {
	opens  int // when the person may be mailed
	barred int // since when the person is suppressed; 0: is not
	mailed int // how often a relay took the mail
	again  int // how often the person waited again after the dot may have been written
}

// doubtful is a person whom the worker of a batch marked, and has not settled.
type doubtful struct {
	batch  string
	offset int
}

// interrupts notes that people of a batch may be in doubt.
func (w *world) interrupts(batch string) {
	for d := range w.risky {
		if d.batch == batch {
			w.risk++
			delete(w.risky, d)
		}
	}
}

// mail is a message of the outbox.
type mail struct{ ended bool }

// newWorld makes a world of a seed.
func newWorld(t *testing.T, db *redisdb.DB, seed uint64, resend bool, f flaw) *world {
	t.Helper()
	do(t, db.Client().FlushDB(t.Context()).Err())
	w := &world{ctx: t.Context(), chance: rand.New(rand.NewPCG(seed, 0)), flaw: f,
		resend: resend, run: Run{Campaign: 7, Number: 2}, epoch: map[string]int{}, risky: map[doubtful]bool{},
		outbox: map[int]*mail{}}
	version := w.versionKey()
	if f == unversioned {
		version = ""
	}
	w.bench = on(db, version)
	w.chunk, w.people = w.chance.IntN(3), 3+w.chance.IntN(8)
	w.groups = []int{0, 2, 16}[w.chance.IntN(3)]
	w.persons = make([]person, w.people)
	for o := range w.persons {
		if w.chance.IntN(4) == 0 {
			w.persons[o].opens = w.chance.IntN(chaos)
		}
	}
	w.must(w.Allow(w.ctx, w.run, 1))
	for range 3 {
		w.procs = append(w.procs, w.start())
	}
	for range 2 {
		w.begin(nil, "keeper", (*actor).keep)
	}
	w.begin(nil, "outbox", (*actor).deliver)
	w.begin(nil, "follower", (*actor).follow)
	w.begin(nil, "pauser", (*actor).pause)
	w.begin(nil, "leaver", (*actor).leave)
	return w
}

// start starts a process.
func (w *world) start() *proc {
	p := &proc{scan: &scan{}}
	w.begin(p, "worker", (*actor).worker)
	w.begin(p, "renewer", (*actor).renew)
	return p
}

func atTick(tick int) time.Time { return time.UnixMilli(int64(tick)) }

func (w *world) must(err error) {
	if err != nil {
		w.fail("%v", err)
	}
}

// fail notes that a promise is broken; the first one counts.
func (w *world) fail(format string, args ...any) {
	if w.wrong == nil {
		w.wrong = fmt.Errorf("step %d: "+format, append([]any{w.tick}, args...)...)
	}
}

func (w *world) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf("%5d ", w.tick)+fmt.Sprintf(format, args...))
}

// story returns what happened.
func (w *world) story() string { return strings.Join(w.notes, "\n") }

// dot writes the final dot to a person. It returns the reply (250, 450, 550, or 0 if it is lost), and whether
// the relay took the mail. began is when the mark was set.
func (w *world) dot(o, began int) (reply int, took bool) {
	p := &w.persons[o]
	if w.deniedAt > 0 && began > w.deniedAt {
		w.fail("%d is mailed: marked at %d, and permission was denied at %d", o, began, w.deniedAt)
	}
	if p.barred > 0 && began > p.barred {
		w.fail("%d is mailed: marked at %d, and suppressed at %d", o, began, p.barred)
	}
	reply = []int{250, 250, 250, 250, 250, 450, 450, 550, 0}[w.chance.IntN(9)]
	took = reply == 250 || reply == 0 && w.chance.IntN(2) == 0
	w.note("the dot to %d: %d, taken %v", o, reply, took)
	if took {
		p.mailed++
	}
	if p.mailed > 1+p.again {
		w.fail("%d is mailed %d times", o, p.mailed)
	}
	return reply, took
}

// judge compares the end with the promises.
func (w *world) judge() {
	states, err := w.States(w.ctx, w.run, w.chunk)
	w.must(err)
	doubts := 0
	for o := range w.people {
		p, state := w.persons[o], Waiting
		if o < len(states) {
			state = states[o]
		}
		switch state {
		case Sent:
			w.sent++
			if p.mailed == 0 || p.mailed > 1+p.again {
				w.fail("%d is sent, and was mailed %d times", o, p.mailed)
			}
		case InDoubt:
			doubts++
		case Suppressed, Bounced, Failed:
			if state == Suppressed {
				w.suppressed++
			}
			if p.mailed > p.again {
				w.fail("%d has state %d, and was mailed %d times", o, state, p.mailed)
			}
		default:
			w.fail("%d is lost: state %d, mailed %d times", o, state, p.mailed)
		}
	}
	if w.doubts = doubts; doubts > w.risk {
		w.fail("%d people are in doubt, of %d that may be", doubts, w.risk)
	}
	w.recount()
	if left, err := w.Owed(w.ctx, w.run, w.chunk); err != nil || len(left) > 0 {
		w.fail("%v are owed a message in the end, %v", left, err)
	}
}

// recount expects that the counters agree with the states.
func (w *world) recount() {
	n, err := w.Recount(w.ctx, w.run, uint32(w.chunk*ChunkSize+w.people))
	if w.must(err); n > 0 {
		w.fail("%d counters differ from the states", n)
	}
	chunks, err := w.Chunks(w.ctx, w.run, uint32(w.chunk*ChunkSize+w.people))
	w.must(err)
	for of, c := range chunks {
		all := newCounts()
		for _, group := range c.Counts.Groups {
			all.Add(group)
		}
		if w.groups > 0 && (all.Taken != c.Counts.Taken || all.States[Sent] != c.Counts.States[Sent]) {
			w.fail("chunk %d: the groups have %+v, and all %+v", of, all, c.Counts)
		}
	}
}

// looseMarks are mark without one of its conditions.
var looseMarks = map[flaw]*redisdb.Script[writeArgs, written]{
	asksOnce: looseMark("permission ~= before", "false"),
	unfenced: looseMark("(ends or 0)", "(ends or '1e15')"),
}

// looseMark returns mark with a part replaced.
func looseMark(part, by string) *redisdb.Script[writeArgs, written] {
	source := redisdb.Source(lua, "lua/write.lua")
	if strings.Count(source, part) != 1 {
		panic("write.lua has no " + part)
	}
	return redisdb.NewScript[writeArgs, written]("sendlog/write", strings.ReplaceAll(source, part, by), prelude)
}

// tryMark is Mark, or a loose one.
func (w *world) tryMark(batch *Batch, o int, version string) (Marking, error) {
	loose := looseMarks[w.flaw]
	if loose == nil {
		m, _, err := w.Mark(w.ctx, batch, o, version)
		return m, err
	}
	answer, err := loose.RunReplicated(w.ctx, w.db, []string{logKey(batch.Run, batch.Chunk),
		permissionKey(batch.Run, batch.Chunk%shards), w.versionKey()}, writeArgs{Groups: 1,
		People: []string{batch.number, "2", batch.permission, version, "", "", "1", strconv.Itoa(o)}})
	if err != nil {
		return Lost, err
	}
	return Marking(answer.Words[0]), nil
}
