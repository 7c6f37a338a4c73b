package outbox

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
)

// TestAnyHistoryKeepsThePromises runs random histories of two processes on one Redis: submits, attempts,
// operators' changes, sweeps and lease renewals. Each may die, stall, be sent twice or lose its answer at any
// call to Redis and around its final dot. Processes are killed, and tasks vanish from the queue. After each
// step the records and their indexes must agree. At the end the outbox settles, and the result must keep the
// promises of the package comment.
//
// -rapid.checks=3000 makes a long run.
func TestAnyHistoryKeepsThePromises(t *testing.T) {
	t.Parallel()
	db := testredis.Open(t, redisdb.Options{Partitions: 2})
	withFates(db)
	rapid.Check(t, func(rt *rapid.T) {
		if err := db.Client().FlushDB(context.Background()).Err(); err != nil {
			rt.Fatal(err)
		}
		m := newModel(t, rt, db)
		defer m.release()
		for range rapid.IntRange(10, 80).Draw(rt, "steps") {
			m.step()
			m.checkRecords()
		}
		m.settle()
		m.check()
	})
}

// model is an outbox of two processes, with its invariants.
type model struct {
	*bundle // shared by the processes: Redis, time, the relay, the accounts
	rt      *rapid.T
	log     *syncBuffer
	ctx     context.Context
	options Options
	relay   *tallyRelay
	procs   [2]*proc
	ids     []string       // ids of the messages known to have been accepted, in order
	sent    []*handed      // what was submitted, in order
	ghosts  []func()       // calls that are to arrive once more
	taken   map[string]int // copies there were when a message was withdrawn, by message and recipient
	barred  map[string]int // copies there were when a recipient was suppressed, with nothing under way
}

// handed is one message, as its client sees it.
type handed struct {
	req    api.SubmitRequest
	id     string   // as answered last; empty means no answer came
	queued []string // its messages, by their first events: several if earlier messages were withdrawn
}

// proc is one process: an Outbox with its memory and its running operations.
type proc struct {
	*Outbox
	stalled []*operation
}

// operation is a verb that a process runs.
type operation struct {
	fate  *fate
	ended chan struct{}
	lived bool // it came to its end
	then  func()
}

func newModel(t *testing.T, rt *rapid.T, db *redisdb.DB) *model {
	o := Options{Attempts: func() int { return 3 }, Backoff: queue.Backoff{Base: 5 * time.Second},
		HoldInDoubt: rapid.Bool().Draw(rt, "hold in doubt")}
	o.Window = rapid.SampledFrom([]int{2, 64}).Draw(rt, "window")
	if rapid.IntRange(0, 3).Draw(rt, "keep dead letters") == 0 {
		o.KeepDeadLetters = -1
	}
	o.KeepContent = time.Hour * time.Duration(rapid.IntRange(0, 1).Draw(rt, "keep content"))
	log := &syncBuffer{}
	o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	m := &model{bundle: setupOn(t, db, o), log: log, rt: rt, ctx: t.Context(), options: o,
		taken: map[string]int{}, barred: map[string]int{}}
	var err error
	if m.store.Suppressions, err = suppression.New(db, suppression.Options{Now: m.clock.Now}); err != nil {
		rt.Fatal(err)
	}
	m.relay = &tallyRelay{scriptedSender: m.sender, copies: map[string]int{}, troubled: map[string]bool{}}
	m.people.hold = rapid.Bool().Draw(rt, "hold troubled accounts")
	m.sender.portion = rapid.IntRange(0, 2).Draw(rt, "recipients in a transaction")
	for i := range m.procs {
		m.procs[i] = m.start()
	}
	if err := m.store.Control.Register(m.ctx, queue.Submit, queue.Lane(queue.Submit, 1), queue.Bulk,
		queue.Lane(queue.Bulk, 1)); err != nil {
		rt.Fatal(err)
	}
	return m
}

// start makes a process.
func (m *model) start() *proc {
	o := m.options
	o.Now = m.clock.Now
	c := m.store.DB.Client()
	b, err := New(Parts{
		DB: m.store.DB, Queue: queue.NewClient(c, queue.Options{}), Control: queue.NewControl(c), Router: m.relay,
		Accounts: m.people, Gateways: scriptedGateways{}, Templates: scriptedTemplates{},
		Suppressions: m.store.Suppressions,
	}, o)
	if err != nil {
		m.rt.Fatal(err)
	}
	return &proc{Outbox: b}
}

// dies reports whether the relay cuts the connection instead of answering the dot.
func (f *scriptedSender) dies(to string) bool { return f.replies[to] == "dies" }

// tallyRelay accepts, refuses and dies by the history, and counts the copies of each recipient.
type tallyRelay struct {
	*scriptedSender
	copies   map[string]int  // by recipient, and by message and recipient
	troubled map[string]bool // recipients with an attempt that may have ended in doubt
}

// Send has the dot written at the end of BeforeDot: between the two, as between the dot and its answer,
// anything may happen.
func (r *tallyRelay) Send(ctx context.Context, d routing.Dispatch) routing.Sent {
	session := *r.scriptedSender
	session.replies = maps.Clone(r.replies)
	mark := d.Message.BeforeDot
	d.Message.BeforeDot = func(ctx context.Context, accepted []string) error {
		f, _ := ctx.Value(fateKey{}).(*fate)
		for _, to := range d.Message.To { // the mark is the message's, not the transaction's
			r.troubled[to] = r.troubled[to] || f != nil && f.what != nothing ||
				slices.ContainsFunc(accepted, session.dies)
		}
		if err := mark(ctx, accepted); err != nil {
			return err
		}
		id, _, _ := MessageOf(d.Message.Labels.Proof())
		written, err := r.dot(ctx, id, accepted, d.Message.AtDot)
		if err != nil && written {
			session.replies[accepted[0]] = "dies" // the connection was cut, and the answer is lost
			return nil
		}
		return err
	}
	return session.Send(ctx, d)
}

// dot writes the final dot, once. It is a step with a fate, as a call to Redis is. As in smtpsend, nothing
// comes between the last check of the time and the writing.
func (r *tallyRelay) dot(ctx context.Context, id string, accepted []string, mayWrite func() error) (
	written bool, err error) {
	err = strike(ctx, func() error {
		if written {
			return nil
		}
		if err := mayWrite(); err != nil {
			return err
		}
		written = true
		for _, to := range accepted {
			r.copies[to]++
			r.copies[id+" "+to]++
		}
		return nil
	}, func() error { return nil }, nil)
	return written, err
}

// do runs a verb in one of the processes, with a fate.
func (m *model) do(name string, verb func(ctx context.Context, b *Outbox) (then func())) {
	m.rt.Helper()
	p, f := m.anyProc(), newFate(rapid.SampledFrom(blows).Draw(m.rt, name+" meets"))
	if f.what != nothing {
		most := 4
		if name == "sweep" || name == "cancel all" || name == "replay all" {
			most = 20
		}
		f.at, f.part = rapid.IntRange(0, most).Draw(m.rt, "at step"), rapid.IntRange(0, 3).Draw(m.rt,
			"after commands")
	}
	m.run(p, f, verb)
}

// run runs a verb in a process until it ends, dies with the process, or stalls. The function then, which verb
// returns, runs after its end.
func (m *model) run(p *proc, f *fate, verb func(ctx context.Context, b *Outbox) (then func())) {
	m.rt.Helper()
	op := &operation{fate: f, ended: make(chan struct{})}
	go func() {
		defer close(op.ended)
		op.then = verb(under(m.ctx, f), p.Outbox)
		op.lived = true
	}()
	select {
	case <-op.ended:
		m.end(p, op)
	case <-f.stalled:
		p.stalled = append(p.stalled, op)
	}
	if f.ghost != nil {
		m.ghosts = append(m.ghosts, f.ghost)
	}
}

// haunt repeats a call that Redis answered long ago: a late copy from the network.
func (m *model) haunt() {
	if len(m.ghosts) > 0 {
		n := rapid.IntRange(0, len(m.ghosts)-1).Draw(m.rt, "which")
		m.ghosts[n]()
		m.ghosts = slices.Delete(m.ghosts, n, n+1)
	}
}

// end is after an operation: its answer is checked, or its process is dead.
func (m *model) end(p *proc, op *operation) {
	if !op.lived {
		m.kill(p)
		return
	}
	if op.then != nil {
		op.then()
	}
}

// release ends the operations that a failed history left.
func (m *model) release() {
	for _, p := range m.procs {
		p.die()
	}
}

// die ends all operations of a process.
func (p *proc) die() {
	for _, op := range p.stalled {
		op.fate.resume <- false
		<-op.ended
	}
	p.stalled = nil
}

// kill ends a process, and starts another instead.
func (m *model) kill(p *proc) {
	p.die()
	m.procs[slices.Index(m.procs[:], p)] = m.start()
}

// thaw continues the operation that stalled first.
func (m *model) thaw(p *proc) {
	if len(p.stalled) == 0 {
		return
	}
	op := p.stalled[0]
	p.stalled = p.stalled[1:]
	op.fate.resume <- true
	<-op.ended
	m.end(p, op)
}

// settle ends all faults and lets the outbox work until only dead letters are left. Stalled operations
// continue or die.
func (m *model) settle() {
	clear(m.sender.replies)
	for _, p := range m.procs {
		if rapid.Bool().Draw(m.rt, "killed in the end") {
			m.kill(p)
		}
		for len(p.stalled) > 0 && slices.Contains(m.procs[:], p) {
			m.thaw(p)
		}
	}
	m.resubmit()
	for rounds, done := 0, false; !done; rounds++ {
		done = m.live() == 0 // and one more round, to clean up
		if rounds == 80 {
			m.rt.Fatalf("%d messages are still live: %v\n%s", m.live(), m.standing(), m.log.String())
		}
		m.clock.Advance(time.Minute)
		if err := m.procs[0].Outbox.sweep(m.ctx); err != nil {
			m.rt.Fatal(err)
		}
		m.workAll()
	}
}

// syncBuffer collects the log of all processes.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// standing describes the records of the messages that are neither done nor dead.
func (m *model) standing() (all []map[string]string) {
	for _, id := range m.ids {
		p, _ := partitionOf(id, m.store.DB.Partitions())
		if r := m.store.DB.Client().HGetAll(m.ctx, m.store.keys.message(p, id)).Val(); len(r) > 0 &&
			r["state"] != stateFailed {
			all = append(all, r)
		}
	}
	return all
}

// resubmit repeats the submits that got no answer and have a key. On a busy machine Redis may answer later
// than a submit waits; then they are repeated again.
func (m *model) resubmit() {
	for _, l := range m.sent {
		if l.id != "" || l.req.IdempotencyKey == "" {
			continue
		}
		answer, err := m.procs[0].Intake.Submit(m.ctx, l.req)
		for patient := 0; fault.Is(err, fault.Unavailable) && patient < 30; patient++ {
			answer, err = m.procs[0].Intake.Submit(m.ctx, l.req)
		}
		if err != nil {
			m.rt.Fatal(err)
		}
		if !answer.NoneQueued() {
			m.answered(l, answer.QueueID)
		}
	}
	m.findAccepted()
}
