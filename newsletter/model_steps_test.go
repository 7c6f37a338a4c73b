package newsletter

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

// patience is how long an operation may take that does not stall.
const patience = time.Minute

// mailing is the name of the operation that mails a batch.
const mailing = "mails"

// do runs a verb in a process, with a blow. What verb returns tells the model its answer.
func (m *model) do(name string, verb func(ctx context.Context, p *process) (then func()), about ...*person) {
	p := m.procs[rapid.IntRange(0, 1).Draw(m.rt, "process")]
	if p.op != nil { // it has stalled; while the other one has, too, this one continues
		if p = m.other(p); p.op != nil {
			m.thaw(p)
			return
		}
	}
	what, at, from := rapid.SampledFrom(blows).Draw(m.rt, name+" meets"), 0, 0
	if what != nothing {
		at = rapid.IntRange(0, map[string]int{mailing: 30, "looks": 40}[name]+11).Draw(m.rt, "at step")
		if sends := name == mailing || name == "delivers"; sends && rapid.IntRange(0, 3).Draw(m.rt, "early") > 0 {
			from, at = rapid.IntRange(1, 3).Draw(m.rt, "of an attempt"), at%7
		}
	}
	if rapid.IntRange(0, 3).Draw(m.rt, "from its cache") > 0 {
		p.forget()
	}
	m.run(p, &operation{name: name, what: what, at: at, from: from, about: about}, verb)
}

func (m *model) other(p *process) *process { return m.procs[1-slices.Index(m.procs[:], p)] }

// run runs a verb in a process until it ends or stalls.
func (m *model) run(p *process, op *operation, verb func(ctx context.Context, p *process) (then func())) {
	op.began, op.run = int(m.tick.Add(1)), len(m.runs)
	op.stalled, op.resume, op.ended = make(chan struct{}), make(chan struct{}), make(chan struct{})
	m.note("%s %s; %s %d", p.name, op.name, op.what, op.at)
	m.touched(op.about...)
	if n := len(m.runs); n > 0 && op.name == mailing && op.what != nothing {
		m.runs[n-1].troubled = true
	}
	p.takes(op)
	go func() {
		defer close(op.ended)
		op.then = verb(p.ctx, p)
	}()
	m.await(p, op, op.stalled)
}

// await waits until an operation has ended, or stalls.
func (m *model) await(p *process, op *operation, stalled chan struct{}) {
	select {
	case <-op.ended:
		m.ended(p, op)
	case <-stalled:
		m.note("%s stalls", p.name)
	case <-time.After(patience):
		m.rt.Fatalf("%s of %s doesn't end\n%s", op.name, p.name, m.story())
	}
}

// ended is after an operation: the model hears its answer, or its process is started again.
func (m *model) ended(p *process, op *operation) {
	p.takes(nil)
	if p.killed() {
		m.note("%s died", p.name)
		p.start()
		return
	}
	if op.then != nil {
		op.then()
	}
}

// late notes that an operation that had stalled may take effect now, or has without an answer.
func (m *model) late(op *operation) {
	m.touched(op.about...)
	switch op.name {
	case settling:
		m.settled(op.run)
	case "forgives", "subscribes":
		for _, p := range op.about {
			p.barred = 0
		}
	}
}

// thaw lets the operation go on that stalled.
func (m *model) thaw(p *process) {
	op := p.op
	if op == nil {
		return
	}
	op.resumed = int(m.tick.Add(1))
	m.note("%s goes on: %s", p.name, op.name)
	m.late(op)
	close(op.resume)
	m.await(p, op, nil)
}

// kill ends a process, and starts it again.
func (m *model) kill(p *process) {
	m.tick.Add(1)
	m.note("%s is killed", p.name)
	p.die()
	if op := p.op; op != nil {
		m.late(op)
		close(op.resume)
		<-op.ended
	}
	p.start()
}

// release ends what a failed history left.
func (m *model) release() {
	for _, p := range m.procs {
		if p.cancel != nil {
			m.kill(p)
			p.cancel()
		}
	}
	m.eye.cancel()
}

// observe sees what the campaign says of itself, after each step.
func (m *model) observe() {
	m.rt.Helper()
	if m.wrong != nil {
		m.rt.Fatalf("%v\n%s", m.wrong, m.story())
	}
	one := m.stored()
	if one.State != m.state {
		m.note("the campaign is %s %s", one.State, one.Reason)
	}
	if m.state = one.State; m.state == api.CampaignSending {
		m.halted = 0
	}
	if len(one.Runs) > len(m.runs) {
		m.runs = append(m.runs, judge{m}.newRun(one))
		m.note("run %d to %q begins", len(m.runs), one.run().To)
	} else if n := len(m.runs); n > 0 {
		judge{m}.decide(m.runs[n-1], one)
	}
}

// stored returns the campaign as it is stored.
func (m *model) stored() *campaign {
	one, err := m.eye.find(m.ctx, "", spring)
	m.must(err)
	return one
}

// expire ends the leases of all batches: the dead's, and stalled operations'.
func (m *model) expire() {
	m.expired = int(m.tick.Add(1))
	m.note("leases end")
	for _, p := range m.procs {
		if p.op != nil {
			p.op.late = p.op.claimed
		}
	}
	c := m.eye.db.Client()
	for _, key := range c.Keys(m.ctx, "postroom:*:sendlog:*:batches").Val() {
		for _, batch := range c.ZRange(m.ctx, key, 0, -1).Val() {
			m.must(c.ZAddXX(m.ctx, key, redis.Z{Score: 1, Member: batch}).Err())
		}
	}
}

// sweep lets the outbox of a process repair what a crash left, once the leases of messages have ended.
func (m *model) sweep() {
	m.tick.Add(1)
	m.clock.Advance(9 * time.Second)
	p, done := m.eye, make(chan struct{})
	ctx, cancel := context.WithCancel(m.ctx)
	go func() {
		defer close(done)
		_ = p.outbox.Run(ctx) // it returns nil
	}()
	now := float64(m.clock.Now().UnixMilli())
	for late := time.Now().Add(patience); m.behind(now); redisdb.Pause(m.ctx, time.Millisecond) {
		if time.Now().After(late) {
			m.rt.Fatalf("the outbox doesn't mend what a crash left\n%s", m.story())
		}
	}
	cancel()
	<-done
}

// behind reports whether a sweep has something to do.
func (m *model) behind(now float64) bool {
	c := m.eye.db.Client()
	for key, age := range map[string]float64{"leases": 0, "unqueued": 3000} {
		all, err := c.ZRangeWithScores(m.ctx, redisdb.Key(0, key), 0, 0).Result()
		m.must(err)
		if len(all) > 0 && all[0].Score <= now-age {
			return true
		}
	}
	return false
}

// follow lets a process apply the next events. They are applied again if it dies.
func (m *model) follow(most int64) func(ctx context.Context, p *process) func() {
	messages, err := m.eye.db.Client().XRangeN(m.ctx, redisdb.Key(0, stream), "("+m.cursor, "+", most).Result()
	m.must(err)
	return func(ctx context.Context, p *process) func() {
		entries := make([]redisdb.Entry, len(messages))
		for i, one := range messages {
			entries[i] = redisdb.Entry{ID: one.ID, Values: one.Values}
		}
		if len(entries) == 0 || p.apply(ctx, entries) != nil {
			return nil
		}
		return func() {
			m.cursor = entries[len(entries)-1].ID
			for _, e := range entries {
				m.hear(e)
			}
		}
	}
}

// hear notes an event in the story.
func (m *model) hear(entry redisdb.Entry) {
	e, err := event.Parse([]byte(entry.Text(field)))
	var about event.Message
	if err != nil || json.Unmarshal(e.Data, &about) != nil || m.letters[about.QueueID] == nil {
		return
	}
	l := m.letters[about.QueueID]
	m.note("event %s of %s", e.Type, l)
	if l.run < len(m.runs) {
		m.touched(l.to)
	}
}

// touched notes that people are changed now, or their mail of an earlier run.
func (m *model) touched(people ...*person) {
	for _, p := range people {
		p.touched = int(m.tick.Load())
	}
}

// tasks are those that a worker may find.
func (m *model) tasks() (all []queue.Task) {
	keys, err := m.eye.db.Client().Keys(m.ctx, "asynq:*:t:*").Result()
	m.must(err)
	slices.Sort(keys)
	for _, key := range keys {
		state, err := m.eye.db.Client().HGet(m.ctx, key, "state").Result()
		m.must(err)
		name, id, _ := strings.Cut(strings.TrimPrefix(key, "asynq:{"), "}:t:")
		if s := queue.State(state); s != queue.Archived && s != queue.Completed {
			message, _, _ := strings.Cut(id, ".")
			all = append(all, queue.Task{Queue: name, Type: outbox.TaskDeliver, ID: id, Payload: []byte(message)})
		}
	}
	return all
}

// deliver has a worker handle a task. A task that comes back later stays as it is, because a worker may take
// one early.
func (m *model) deliver(t queue.Task) func(ctx context.Context, p *process) func() {
	return func(ctx context.Context, p *process) func() {
		if l := m.letters[string(t.Payload)]; l != nil && p.op.what != nothing {
			l.troubled = true // a worker that dies leaves an attempt
		}
		v := p.outbox.Delivery.Deliver(ctx, t)
		return func() {
			m.note("task of %s: %s", t.Payload, v)
			control, change := queue.NewControl(m.eye.db.Client()), (*queue.Control).Delete
			switch v.String() {
			case "bury":
				change = (*queue.Control).Archive
			case "done", "drop":
			default:
				return
			}
			change(control, m.ctx, t.Queue, t.ID)
		}
	}
}

// calm runs a verb in a process that nothing disturbs.
func (m *model) calm(p *process, name string, verb func(ctx context.Context, p *process) func(),
	about ...*person) {
	p.forget()
	m.run(p, &operation{name: name, about: about}, verb)
	m.observe()
}

// settle ends all faults, and lets the processes work until all has gone quiet.
func (m *model) settle() {
	m.note("from here on nothing is disturbed")
	for _, p := range m.procs {
		if rapid.Bool().Draw(m.rt, "killed in the end") {
			m.kill(p)
		}
		m.thaw(p)
		m.observe()
	}
	mended := rapid.Bool().Draw(m.rt, "the relay is mended")
	for to, reply := range m.replies {
		if mended || reply == away {
			delete(m.replies, to)
		}
	}
	for rounds, quiet := 0, false; !quiet; rounds++ {
		if rounds == 60 {
			one := m.stored()
			for n := range one.Runs {
				m.note("run %d: %v, %+v", n+1, one.Runs[n], judge{m}.recipients(n+1))
			}
			m.rt.Fatalf("it doesn't go quiet, and is %s\n%s", one.State, m.story())
		}
		quiet = m.isQuiet() // and one more round, to clean up
		m.clock.Advance(time.Hour)
		m.expire()
		for _, p := range m.procs {
			m.work(p)
		}
		m.goOn()
		m.sweep()
	}
}

// work lets a process do all that there is to do.
func (m *model) work(p *process) {
	m.calm(p, "looks", looks)
	for more := true; more; {
		m.calm(p, mailing, func(ctx context.Context, p *process) func() {
			more = p.mail(ctx)
			return nil
		})
	}
	for _, t := range m.tasks() {
		m.calm(p, "delivers", m.deliver(t))
	}
	for before := "-"; before != m.cursor; {
		before = m.cursor
		m.calm(p, "follows", m.follow(100))
	}
	for _, one := range m.people {
		if one.erasing {
			m.calm(p, "erases", hand{m}.erase(one), one)
		}
	}
}

func looks(ctx context.Context, p *process) func() {
	err := p.look(ctx)
	return func() {
		if err != nil {
			p.m.note("looked: %v", err)
		}
	}
}

// goOn resumes the campaign, and decides its winner.
func (m *model) goOn() {
	one := m.stored()
	switch {
	case one.State == api.CampaignPaused || one.State == api.CampaignHeld:
		m.calm(m.procs[0], "resumes", hand{m}.resume)
	case one.State == api.CampaignSending && one.open():
		m.calm(m.procs[0], "decides", decides)
	}
}

// isQuiet reports whether nothing is left to do.
func (m *model) isQuiet() bool {
	if m.state != api.CampaignDraft && !ended(m.state) || slices.ContainsFunc(m.people,
		func(p *person) bool { return p.erasing }) {
		return false
	}
	c := m.eye.db.Client()
	for _, lane := range []api.Lane{api.Bulk, api.Transactional} {
		for _, state := range []string{"waiting", "scheduled", "delayed"} {
			if c.ZCard(m.ctx, redisdb.Key(0, "index", string(lane), state)).Val() > 0 {
				return false
			}
		}
	}
	live, err := c.SCard(m.ctx, liveKey()).Result()
	m.must(err)
	unread, err := c.XRangeN(m.ctx, redisdb.Key(0, stream), "("+m.cursor, "+", 1).Result()
	m.must(err)
	return live == 0 && len(unread) == 0
}

// statesOf returns the states of a person in the runs before one.
func (m *model) statesOf(p *person, one *campaign, before int) []sendlog.State {
	var runs []sendlog.Run
	for n := 1; n < before; n++ {
		runs = append(runs, sendlog.Run{Campaign: one.Number, Number: n})
	}
	states, err := m.eye.Log.StatesOf(m.ctx, p.ordinal, runs...)
	m.must(err)
	return states
}
