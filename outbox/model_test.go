package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/smtpsend"
)

// TestAnyHistoryKeepsThePromises drives an outbox through random histories of submits, attempts, crashes at any point, lease expiries and
// operators' verbs, lets it settle, and holds the result to the promises of the package comment.
func TestAnyHistoryKeepsThePromises(t *testing.T) {
	t.Parallel()
	db := testredis.Open(t, redisdb.Options{Partitions: 2})
	rapid.Check(t, func(rt *rapid.T) {
		if err := db.Client().FlushDB(context.Background()).Err(); err != nil {
			rt.Fatal(err)
		}
		m := newModel(t, rt, db)
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			m.step()
		}
		m.settle()
		m.check()
	})
}

// model is an outbox together with what must be true of it.
type model struct {
	*bundle
	rt       *rapid.T
	ctx      context.Context
	relay    *tallyRelay
	ids      []string
	replays  map[string]int // by message
	inflight []*claim       // attempts whose worker is frozen or dead
}

// tallyRelay accepts, refuses and dies as the history says, and counts what each recipient really got.
type tallyRelay struct {
	*scriptedSender
	copies map[string]int
}

func (r *tallyRelay) Send(ctx context.Context, d Dispatch) Dispatched {
	out := r.scriptedSender.Send(ctx, d)
	for _, got := range out.Result.Recipients {
		if got.Err == nil || got.Err.InDoubt {
			r.copies[got.Address]++
		}
	}
	return out
}

func newModel(t *testing.T, rt *rapid.T, db *redisdb.DB) *model {
	o := Options{Attempts: func() int { return 3 }, Backoff: queue.Backoff{Base: 5 * time.Second}, HoldInDoubt: rapid.Bool().Draw(rt, "hold in doubt")}
	m := &model{bundle: setupOn(t, db, o), rt: rt, ctx: t.Context(), replays: map[string]int{}}
	m.relay = &tallyRelay{scriptedSender: m.sender, copies: map[string]int{}}
	m.Sender = m.relay
	m.people.hold = rapid.Bool().Draw(rt, "hold troubled accounts")
	m.sender.portion = rapid.IntRange(0, 2).Draw(rt, "recipients in a transaction")
	return m
}

// step does one random thing.
func (m *model) step() {
	m.rt.Helper()
	verbs := map[string]func(){
		"submit": m.submit, "reply": m.reply, "work": m.work, "crash": m.crash, "thaw": m.thaw, "sweep": m.sweep,
		"advance": func() { m.clock.advance(time.Duration(rapid.IntRange(1, 30).Draw(m.rt, "seconds")) * time.Second) },
		"cancel":  func() { m.each(func(id string) error { _, err := m.Cancel(m.ctx, id, ReasonAPI); return err }) },
		"retry":   m.retry,
		"limit":   func() { m.sender.full = m.clock.now().Add(10 * time.Second) },
		"archive": func() { m.each(func(id string) error { return m.TaskArchived(m.ctx, taskID(id, "1")) }) },
	}
	names := []string{"submit", "submit", "reply", "work", "work", "crash", "thaw", "sweep", "sweep", "advance", "cancel", "retry", "archive", "limit"}
	verbs[rapid.SampledFrom(names).Draw(m.rt, "verb")]()
}

func (m *model) submit() {
	n := len(m.ids)
	req := api.SubmitRequest{Text: "x"}
	for i := range rapid.IntRange(1, 3).Draw(m.rt, "recipients") {
		req.To = append(req.To, api.Address{Address: fmt.Sprintf("r%d-%d@x.test", n, i)})
	}
	if rapid.Bool().Draw(m.rt, "scheduled") {
		at := m.clock.now().Add(20 * time.Second)
		req.SendAt = &at
	}
	a, err := m.Submit(m.ctx, req)
	if err != nil {
		m.rt.Fatal(err)
	}
	m.ids = append(m.ids, a.QueueID)
}

// reply changes what the relay says about one recipient.
func (m *model) reply() {
	if len(m.ids) > 0 {
		n := rapid.IntRange(0, len(m.ids)-1).Draw(m.rt, "whose")
		to := fmt.Sprintf("r%d-%d@x.test", n, rapid.IntRange(0, 2).Draw(m.rt, "recipient"))
		m.sender.replies[to] = rapid.SampledFrom([]string{"", "451 4.7.1 later", "550 5.1.1 nobody", "dies", "535 5.7.8 wrong password"}).Draw(m.rt, "reply")
	}
}

// one picks a message.
func (m *model) one() (string, bool) {
	if len(m.ids) == 0 {
		return "", false
	}
	return rapid.SampledFrom(m.ids).Draw(m.rt, "message"), true
}

func (m *model) each(do func(id string) error) {
	if id, ok := m.one(); ok {
		if err := do(id); err != nil && !strings.Contains(err.Error(), "being sent") {
			m.rt.Fatal(err)
		}
	}
}

func (m *model) work() {
	if id, ok := m.one(); ok {
		m.Deliver(m.ctx, queue.Task{ID: taskID(id, "1")})
	}
}

// crash begins an attempt and leaves it at a random point: before the dot, after the mark, or with the dot written; of the first transaction
// or of the second.
func (m *model) crash() {
	id, ok := m.one()
	if !ok {
		return
	}
	c, _, err := m.begin(m.ctx, id)
	if err != nil {
		m.rt.Fatal(err)
	}
	if c == nil {
		return
	}
	if left := c.status.having(rcptQueued); len(left) > 1 && rapid.Bool().Draw(m.rt, "in the second transaction") {
		m.transact(c, c.envelope.To[left[0]])
	}
	if rapid.Bool().Draw(m.rt, "after the mark") {
		if err := m.doubt(m.ctx, c); err != nil {
			m.rt.Fatal(err)
		}
		if rapid.Bool().Draw(m.rt, "dot written") {
			for _, to := range c.envelope.addresses(c.status.having(rcptQueued)) {
				m.relay.copies[to]++
			}
		}
		return
	}
	m.inflight = append(m.inflight, c) // it may wake up later
}

// transact delivers to one recipient in a transaction of its own, as an attempt with more to follow does.
func (m *model) transact(c *claim, to string) {
	if err := m.doubt(m.ctx, c); err != nil {
		m.rt.Fatal(err)
	}
	m.relay.copies[to]++
	if err := m.progress(m.ctx, c, []smtpsend.RecipientResult{{Address: to, Response: "250 ok"}}); err != nil {
		m.rt.Fatal(err)
	}
}

// thaw lets a worker that was frozen before its dot go on.
func (m *model) thaw() {
	if len(m.inflight) > 0 {
		c := m.inflight[0]
		m.inflight = m.inflight[1:]
		m.record(m.ctx, c, m.attempt(m.ctx, c, m.clock.now()))
	}
}

func (m *model) sweep() {
	if err := newSweeper(m.Outbox).sweep(m.ctx); err != nil {
		m.rt.Fatal(err)
	}
}

func (m *model) retry() {
	id, ok := m.one()
	if !ok {
		return
	}
	before, err := m.DeadLetter(m.ctx, id)
	if _, retryErr := m.Retry(m.ctx, id); err == nil && retryErr == nil && before.State == api.Failed {
		m.replays[id]++
	}
}

// settle heals the relay and lets the outbox do its work until nothing is left but dead letters.
func (m *model) settle() {
	clear(m.sender.replies)
	m.inflight = nil
	for range 30 {
		m.clock.advance(time.Minute)
		m.sweep()
		for _, id := range m.ids {
			m.Deliver(m.ctx, queue.Task{ID: taskID(id, "1")})
		}
	}
}

// check holds what came of it to the promises.
func (m *model) check() {
	last, doubted := m.lastWords()
	for n, id := range m.ids {
		for i := range 3 {
			to := fmt.Sprintf("r%d-%d@x.test", n, i)
			copies, words := m.relay.copies[to], last[to]
			if copies > 1 && !doubted[id] {
				m.rt.Errorf("%s was mailed %d times, and no attempt was in doubt", to, copies)
			}
			if words == 0 && slices.Contains(m.addressed(id), to) || words > 1+m.replays[id] {
				m.rt.Errorf("%s had %d last words after %d replays", to, words, m.replays[id])
			}
		}
	}
	page, err := m.List(m.ctx, api.OutboxQuery{PageSize: 1000})
	if err != nil {
		m.rt.Fatal(err)
	}
	for _, left := range page.Messages {
		if left.State != api.Failed {
			m.rt.Errorf("message %s is still %s", left.QueueID, left.State)
		}
	}
	m.checkIndexes(len(page.Messages))
}

// lastWords counts the terminal events of each recipient, and tells the messages that ever had an attempt in doubt.
func (m *model) lastWords() (map[string]int, map[string]bool) {
	words, doubted := map[string]int{}, map[string]bool{}
	for _, e := range m.allEvents() {
		var d struct {
			event.Message
			InDoubt   bool   `json:"inDoubt"`
			ErrorCode string `json:"errorCode"`
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			m.rt.Fatal(err)
		}
		doubted[d.QueueID] = doubted[d.QueueID] || d.InDoubt || d.ErrorCode == "EINDOUBT"
		if e.Type == event.MessageSent || e.Type == event.MessageFailed || e.Type == event.MessageCancelled {
			for _, to := range d.Envelope.To {
				words[to]++
			}
		}
	}
	return words, doubted
}

// addressed tells whom a message was for, from its first event.
func (m *model) addressed(id string) []string {
	for _, e := range m.allEvents() {
		var d event.Queued
		if e.Type == event.MessageQueued && json.Unmarshal(e.Data, &d) == nil && d.QueueID == id {
			return d.Envelope.To
		}
	}
	m.rt.Fatalf("message %s was never reported as queued", id)
	return nil
}

func (m *model) allEvents() []event.Event {
	var all []event.Event
	for p := range m.DB.Partitions() {
		entries, err := m.DB.Client().XRange(m.ctx, m.store.events(p), "-", "+").Result()
		if err != nil {
			m.rt.Fatal(err)
		}
		for _, entry := range entries {
			e, err := event.Parse([]byte(entry.Values["e"].(string)))
			if err != nil {
				m.rt.Fatal(err)
			}
			all = append(all, e)
		}
	}
	return all
}

// checkIndexes finds entries of indexes without a message: what is left must be dead letters, each in the three sets it belongs to.
func (m *model) checkIndexes(letters int) {
	want := map[string]int{"failed": letters, "failed of the account": letters, "dead": letters}
	got := map[string]int{}
	for p := range m.DB.Partitions() {
		count := func(name, key string) { got[name] += int(m.card(key)) }
		for _, lane := range []string{"transactional", "bulk"} {
			for _, st := range []string{stateWaiting, stateActive, stateDelayed, stateFailed} {
				count(st, m.store.index(p, lane, st))
				count(st+" of the account", of(m.store.index(p, lane, st), "default"))
			}
		}
		for _, clock := range []string{"due", "leases", "dead"} {
			count(clock, redisdb.Key(p, clock))
		}
	}
	for p := range m.DB.Partitions() {
		if n := m.DB.Client().SCard(m.ctx, m.store.held(p)).Val(); n > 0 {
			m.rt.Errorf("partition %d still has held messages", p)
		}
	}
	for name, n := range got {
		if n != want[name] {
			m.rt.Errorf("%d entries under %s, want %d", n, name, want[name])
		}
	}
}

func (m *model) card(key string) int64 {
	n, err := m.DB.Client().ZCard(m.ctx, key).Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // go-redis documents the comparison
		m.rt.Fatal(err)
	}
	return n
}
