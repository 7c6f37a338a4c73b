package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
)

// verbs are the possible steps with their weights. Those in deeds change one message.
var verbs = []string{
	"submit", "submit again", "reply", "reply", "work", "work", "work", "thaw", "kill", "sweep", "renew", "note",
	"advance", "expire", "cancel all",
	"replay all", "limit", "crowd", "lose task", "archive task", "flush queues", "haunt", "haunt",
	"race", "race",
	"race",
	"race",
	"suppress", "suppress", "forgive", "wake", "cancel", "retry", "patch", "replay", "correct", "delete letter",
	"archive", "delete", "run",
}

// step runs one random verb.
func (m *model) step() {
	verb := "submit"
	if len(m.sent) > 0 {
		verb = rapid.SampledFrom(verbs).Draw(m.rt, "verb")
	}
	switch verb {
	case "submit":
		if len(m.sent) < 4 { // few, so that much happens to each
			m.submit()
		}
	case "submit again":
		m.submitAgain()
	case "reply":
		m.reply()
	case "work":
		m.work()
	case "thaw":
		m.thaw(m.anyProc())
	case "kill":
		m.kill(m.anyProc())
	case "sweep":
		m.do(verb, func(ctx context.Context, b *Outbox) func() { return fine(m, b.sweep(ctx)) })
	case "renew":
		m.do(verb, func(ctx context.Context, b *Outbox) func() { b.Delivery.leases.Renew(ctx); return nil })
	case "note":
		m.do(verb, func(ctx context.Context, b *Outbox) func() { b.store.queued.flush(ctx); return nil })
	case "cancel all":
		m.do(verb, func(ctx context.Context, b *Outbox) func() {
			_, err := b.Operations.CancelAll(ctx, api.OutboxQuery{State: api.Scheduled}, ReasonAPI)
			return fine(m, err)
		})
	case "replay all":
		m.do(verb, func(ctx context.Context, b *Outbox) func() {
			_, err := b.Operations.ReplayAll(ctx, api.ReplayRequest{})
			return fine(m, err)
		})
	case "advance": // even seconds: a worker waits out a fraction
		m.clock.Advance(2 * time.Second * time.Duration(rapid.IntRange(1, 15).Draw(m.rt, "seconds")))
	case "expire":
		m.expire()
	case "limit":
		m.sender.full = m.clock.Now().Add(10 * time.Second)
	case "crowd":
		m.sender.crowded = m.clock.Now().Add(10 * time.Second)
	case "lose task", "archive task", "flush queues":
		m.meddle(verb)
	case "haunt":
		m.haunt()
	case "suppress":
		m.suppress()
	case "forgive":
		m.forgive()
	case "race":
		m.race()
	default:
		if id, ok := m.one(); ok {
			m.do(verb, m.deed(verb, id))
		}
	}
}

// deeds are the changes of one message: by a worker, by the API, in the dashboard.
var deeds = map[string]func(ctx context.Context, b *Outbox, id string, now time.Time) error{
	"wake": func(ctx context.Context, b *Outbox, id string, _ time.Time) error {
		b.Delivery.Deliver(ctx, queue.Task{ID: taskID(id, "1")})
		return nil
	},
	"retry": func(ctx context.Context, b *Outbox, id string, _ time.Time) error {
		_, err := b.Operations.Retry(ctx, id)
		return err
	},
	"patch": func(ctx context.Context, b *Outbox, id string, now time.Time) error {
		later, gateway := now.Add(20*time.Second), "gw"
		_, err := b.Operations.Patch(ctx, id, api.OutboxPatch{SendAt: &later, Gateway: &gateway})
		return err
	},
	"replay": func(ctx context.Context, b *Outbox, id string, _ time.Time) error {
		_, err := b.Operations.Replay(ctx, id, api.Corrections{})
		return err
	},
	"correct": func(ctx context.Context, b *Outbox, id string, now time.Time) error {
		to := fmt.Sprintf("instead-%d-%s@x.test", now.Unix(), strings.ToLower(id))
		_, err := b.Operations.Replay(ctx, id, api.Corrections{To: api.Emails{to}, Account: "other"})
		return err
	},
	"delete letter": func(ctx context.Context, b *Outbox, id string, _ time.Time) error {
		_, err := b.Operations.DeleteDeadLetter(ctx, id)
		return err
	},
	"archive": func(ctx context.Context, b *Outbox, id string, _ time.Time) error {
		return b.Operations.TaskArchived(ctx, taskID(id, "1"))
	},
	"delete": func(ctx context.Context, b *Outbox, id string, _ time.Time) error {
		return b.Operations.TaskDeleted(ctx, taskID(id, "1"))
	},
	"run": func(ctx context.Context, b *Outbox, id string, _ time.Time) error {
		return b.Operations.TaskRun(ctx, taskID(id, "1"))
	},
	"cancel": func(ctx context.Context, b *Outbox, id string, _ time.Time) error {
		_, err := b.Operations.Cancel(ctx, id, ReasonAPI)
		return err
	},
}

// deed is one of them.
func (m *model) deed(verb, id string) func(ctx context.Context, b *Outbox) func() {
	if verb == "cancel" {
		return m.cancel(id)
	}
	do, now := deeds[verb], m.clock.Now()
	return func(ctx context.Context, b *Outbox) func() { return fine(m, do(ctx, b, id, now)) }
}

// race runs a deed while another deed of the same message runs. The lease may end in between.
func (m *model) race() {
	id, ok := m.one()
	if !ok {
		return
	}
	names := slices.Sorted(maps.Keys(deeds))
	first, second := rapid.SampledFrom(names).Draw(m.rt, "while"), rapid.SampledFrom(names).Draw(m.rt, "does")
	f := newFate(rapid.SampledFrom([]blow{stallBefore, stallBefore, stallAfter, repeatLate, haunt}).Draw(m.rt,
		"stopped by"))
	f.at = rapid.IntRange(0, 3).Draw(m.rt, "at step")
	slow := m.anyProc()
	m.run(slow, f, m.deed(first, id))
	if rapid.Bool().Draw(m.rt, "leases run out") {
		m.expire()
	}
	m.run(m.anyProc(), newFate(nothing), m.deed(second, id))
	m.thaw(slow)
}

// expire ends all leases and runs a sweeper without faults.
func (m *model) expire() {
	m.clock.Advance(10 * time.Second)
	if err := m.anyProc().Outbox.sweep(m.ctx); err != nil {
		m.rt.Fatal(err)
	}
}

func (m *model) anyProc() *proc {
	return m.procs[rapid.IntRange(0, len(m.procs)-1).Draw(m.rt, "process")]
}

// one picks a message.
func (m *model) one() (string, bool) {
	if len(m.ids) == 0 {
		return "", false
	}
	return m.ids[rapid.IntRange(0, len(m.ids)-1).Draw(m.rt, "message")], true
}

// fine reports an error that a verb must not return.
func fine(m *model, err error) func() {
	for _, kind := range []fault.Kind{fault.Conflict, fault.NotFound, fault.Invalid, fault.Unavailable} {
		if err == nil || fault.Is(err, kind) || redisdb.Unavailable(err) {
			return nil
		}
	}
	return func() { m.rt.Errorf("a verb failed: %v", err) }
}

// cancel notes how many copies there were when a message was cancelled.
func (m *model) cancel(id string) func(ctx context.Context, b *Outbox) func() {
	return func(ctx context.Context, b *Outbox) func() {
		answer, err := b.Operations.Cancel(ctx, id, ReasonAPI)
		if err != nil || !answer.Deleted {
			return fine(m, err)
		}
		return func() {
			for _, to := range m.recipients(id) {
				m.taken[id+" "+to] = m.relay.copies[id+" "+to]
			}
		}
	}
}

// suppress suppresses a recipient. After the answer it gets no copy, except from an attempt that looked
// before.
func (m *model) suppress() {
	if len(m.sent) == 0 {
		return
	}
	to := anybody(m, "whom")
	if _, err := m.store.Suppressions.Add(m.ctx, suppression.Entry{
		Address: to, Reason: suppression.Manual}); err != nil {
		m.rt.Fatal(err)
	}
	if !slices.ContainsFunc(m.procs[:], func(p *proc) bool { return len(p.stalled) > 0 }) {
		m.barred[to] = m.relay.copies[to]
	}
}

// forgive removes a suppression.
func (m *model) forgive() {
	if len(m.sent) == 0 {
		return
	}
	to := anybody(m, "whom not")
	if _, err := m.store.Suppressions.Remove(m.ctx, suppression.Entry{
		Address: to, Reason: suppression.Manual}); err != nil {
		m.rt.Fatal(err)
	}
	delete(m.barred, to)
}

// anybody returns a random recipient.
func anybody(m *model, why string) string {
	l := m.sent[rapid.IntRange(0, len(m.sent)-1).Draw(m.rt, why)]
	return l.req.To[rapid.IntRange(0, len(l.req.To)-1).Draw(m.rt, "recipient")].Address
}

func (m *model) submit() {
	n := len(m.sent)
	req := api.SubmitRequest{Text: "x", MessageID: fmt.Sprintf("<m%d@x.test>", n)}
	for i := range rapid.IntRange(1, 3).Draw(m.rt, "recipients") {
		req.To = append(req.To, api.Address{Address: fmt.Sprintf("r%d-%d@x.test", n, i)})
	}
	if rapid.Bool().Draw(m.rt, "scheduled") {
		at := m.clock.Now().Add(20 * time.Second)
		req.SendAt = &at
	}
	if rapid.Bool().Draw(m.rt, "bulk") {
		req.Lane = api.Bulk
	}
	if rapid.Bool().Draw(m.rt, "with a key") {
		req.IdempotencyKey = fmt.Sprintf("key-%d", n)
	}
	if rapid.Bool().Draw(m.rt, "from a template") {
		req.Text, req.Template = "", rapid.SampledFrom([]string{"welcome", "invoice"}).Draw(m.rt, "template")
	}
	if rapid.Bool().Draw(m.rt, "with a token that has a quota") {
		req.Token, req.TokenQuota = "t1", &api.TokenQuota{Messages: 1 << 20}
	}
	l := &handed{req: req}
	m.sent = append(m.sent, l)
	m.hand(l)
}

// submitAgain repeats a submit with a key, answered or not. Without a key that would be another message.
func (m *model) submitAgain() {
	var keyed []*handed
	for _, l := range m.sent {
		if l.req.IdempotencyKey != "" {
			keyed = append(keyed, l)
		}
	}
	if len(keyed) > 0 {
		m.hand(keyed[rapid.IntRange(0, len(keyed)-1).Draw(m.rt, "which")])
	}
}

// hand submits a message in a process.
func (m *model) hand(l *handed) {
	m.do("submit", func(ctx context.Context, b *Outbox) func() {
		answer, err := b.Intake.Submit(ctx, l.req)
		if err != nil {
			return fine(m, err)
		}
		if answer.NoneQueued() {
			return nil
		}
		return func() { m.answered(l, answer.QueueID) }
	})
	m.findAccepted()
}

func (m *model) answered(l *handed, id string) {
	switch {
	case l.id == "" || l.id == id || takenBack(m, l.id):
		l.id = id
	case takenBack(m, id): // this answer was late
	default:
		m.rt.Errorf("key %s was answered with %s and with %s", l.req.IdempotencyKey, l.id, id)
	}
}

// takenBack reports whether a message was cancelled, or its dead letter deleted.
func takenBack(m *model, id string) bool {
	r, err := m.procs[0].Reader.readLogged(m.ctx, id)
	if err != nil {
		m.rt.Fatal(err)
	}
	return r.state == resultCancelled || r.ended > 0 && r.state == resultFailed && m.options.KeepDeadLetters >= 0
}

// reply changes the relay's reply for one recipient.
func (m *model) reply() {
	if len(m.sent) == 0 {
		return
	}
	l := m.sent[rapid.IntRange(0, len(m.sent)-1).Draw(m.rt, "whose")]
	to := l.req.To[rapid.IntRange(0, len(l.req.To)-1).Draw(m.rt, "recipient")].Address
	m.sender.replies[to] = rapid.SampledFrom([]string{"", "451 4.7.1 later", "550 5.1.1 nobody", "dies",
		"535 5.7.8 wrong password"}).Draw(m.rt, "reply")
}
