package newsletter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// hand is whoever does something to the world.
type hand struct{ *model }

// verbs are the possible steps with their weights.
var verbs = []string{
	"look", "look", "look", "mail", "mail", "mail", "mail", "mail", "mail", "mail", "mail", "follow", "follow",
	"follow", "deliver", "deliver", "deliver", "deliver", "deliver", "reply", "reply", "advance", "advance",
	"sweep", "expire", "expire", "kill", "thaw", "thaw", "thaw", "limit", "suppress", "forgive", "leave",
	"subscribe", "erase", "open", "settle", "recount", "test", "replay", "replay", "cancel message", "retry",
}

// fitting are the further steps in a state of the campaign, with their weights. Now and then one comes in
// another state.
var fitting = map[string][]string{
	"":                    {"send", "send", "schedule"},
	api.CampaignDraft:     {"send", "send", "send", "send", "send", "send", "schedule", "schedule", "edit"},
	api.CampaignScheduled: {"advance", "look", "edit", "pause"},
	api.CampaignSending:   {"pause", "pause", "cancel", "winner", "winner"},
	api.CampaignPaused:    {"resume", "resume", "resume", "edit", "cancel"},
	api.CampaignHeld:      {"resume", "resume", "resume", "edit"},
	api.CampaignSent:      {"resend", "resend", "resend", "resend", "open", "open"},
	api.CampaignCancelled: {"resend", "resend"},
}

// overtaking are further steps while an operation stalls: those that may come before it after all.
var overtaking = map[string][]string{
	mailing: {"outlive", "outlive", "outlive", "pause", "cancel", "suppress", "suppress", "leave"},
	"sends": {"edit", "edit", "edit", "send", "thaw"}, "schedules": {"edit", "send", "thaw"},
	"edits": {"send", "resume", "edit", "thaw", "thaw"}, "resumes": {"edit", "edit", "pause", "thaw"},
	"looks":   {"edit", "send", "resend", "cancel", "pause", "resume", "look", "thaw"},
	"resends": {"replay", "deliver", "cancel", "look", "thaw"}, "replays": {"resend", "deliver", "cancel"},
	"retries": {"resend", "deliver", "cancel"}, "delivers": {"resend", "replay", "pause", "cancel", "edit"},
	"follows": {"replay", "deliver", "resend"},
}

// step takes one random step.
func (m hand) step() {
	verb := rapid.SampledFrom(verbs).Draw(m.rt, "verb")
	more := 7
	if len(m.runs) == 0 {
		more = 1
	}
	if rapid.IntRange(0, more).Draw(m.rt, "what fits") == 0 {
		state := m.state
		if rapid.IntRange(0, 9).Draw(m.rt, "badly") == 0 {
			state = rapid.SampledFrom(slices.Sorted(maps.Keys(fitting))).Draw(m.rt, "of a state")
		}
		verb = rapid.SampledFrom(fitting[state]).Draw(m.rt, "fitting")
	}
	for _, p := range m.procs {
		if some := overtaking[p.stalled()]; some != nil && rapid.IntRange(0, 3).Draw(m.rt, "overtake") == 0 {
			verb = rapid.SampledFrom(some).Draw(m.rt, "overtaking")
		}
	}
	m.act(verb)
}

// act does what a verb says.
func (m hand) act(verb string) {
	switch verb {
	case "outlive":
		m.outlive()
	case "look":
		m.do("looks", looks)
	case "mail":
		m.clock.Advance(time.Second * time.Duration(rapid.IntRange(0, 1).Draw(m.rt, "seconds")))
		if m.state == api.CampaignSending && rapid.IntRange(0, 3).Draw(m.rt, "look before") > 0 {
			for _, p := range m.procs {
				if p.op == nil {
					m.calm(p, "looks", looks)
				}
			}
		}
		m.do(mailing, func(ctx context.Context, p *process) func() { p.mail(ctx); return nil })
	case "follow":
		m.followSome()
	case "deliver":
		if tasks := m.tasks(); len(tasks) > 0 {
			m.do("delivers", m.deliver(rapid.SampledFrom(tasks).Draw(m.rt, "task")))
		}
	case "reply":
		m.replies[m.anybody().email] = rapid.SampledFrom(replies).Draw(m.rt, "reply")
	case "advance":
		m.clock.Advance(time.Second * time.Duration(rapid.SampledFrom([]int{1, 2, 10, 60, 4000}).Draw(m.rt,
			"seconds")))
	case "sweep":
		m.sweep()
	case "expire":
		m.expire()
	case "kill":
		m.kill(m.procs[rapid.IntRange(0, 1).Draw(m.rt, "process")])
	case "thaw":
		m.thaw(m.procs[rapid.IntRange(0, 1).Draw(m.rt, "process")])
	case "limit":
		m.full = m.clock.Now().Add(time.Minute)
	case "suppress", "forgive", "leave", "subscribe", "erase":
		m.change(verb)
	case "open", "replay", "cancel message", "retry":
		if l := m.anyLetter(verb == "open"); l != nil {
			m.touch(verb, l)
		}
	default:
		m.operate(verb)
	}
}

// outlive ends the leases of a worker that stalls, lets the other process take its people, and continues it.
func (m hand) outlive() {
	m.expire()
	for _, p := range m.procs {
		if p.op == nil {
			m.calm(p, "looks", looks)
			m.calm(p, mailing, func(ctx context.Context, p *process) func() { p.mail(ctx); return nil })
		}
	}
	for _, p := range m.procs {
		if p.stalled() == mailing {
			m.thaw(p)
		}
	}
}

// followSome applies some events, unless a process is doing so.
func (m hand) followSome() {
	if m.following {
		m.following = slices.ContainsFunc(m.procs[:],
			func(p *process) bool { return p.op != nil && p.op.name == "follows" })
		return
	}
	m.following = true
	m.do("follows", m.follow(int64(rapid.IntRange(1, 8).Draw(m.rt, "events"))))
}

// anybody picks a person: while a worker stalls, more often one whose mail it is about to begin.
func (m hand) anybody() *person {
	some := m.people
	mails := m.procs[0].stalled() == mailing || m.procs[1].stalled() == mailing
	if mails && rapid.Bool().Draw(m.rt, "begins") {
		some = slices.DeleteFunc(slices.Clone(some), func(p *person) bool {
			for _, l := range m.letters {
				if l.to == p && l.run == len(m.runs) {
					return true
				}
			}
			return !p.on
		})
	}
	if len(some) == 0 {
		some = m.people
	}
	return rapid.SampledFrom(some).Draw(m.rt, "person")
}

// anyLetter picks a letter that the relay accepted, or one that it did not; nil if there is none.
func (m hand) anyLetter(accepted bool) *letter {
	var some []string
	for id, l := range m.letters {
		if n := len(l.tries); n > 0 && (l.tries[n-1].reply == "") == accepted {
			some = append(some, id)
		}
	}
	if len(some) == 0 {
		return nil
	}
	slices.Sort(some)
	return m.letters[rapid.SampledFrom(some).Draw(m.rt, "letter")]
}

// operate does what an operator does with the campaign.
func (m hand) operate(verb string) {
	switch verb {
	case "send", "schedule":
		start := api.CampaignStart{}
		if verb == "schedule" {
			start.At = m.clock.Now().Add(time.Minute).Format(time.RFC3339)
		}
		m.do(verb+"s", func(ctx context.Context, p *process) func() {
			_, err := p.Send(ctx, "", spring, start)
			return m.answer(err)
		})
	case "pause", "cancel":
		m.do(verb+"s", func(ctx context.Context, p *process) func() {
			end := p.Pause
			if verb == "cancel" {
				end = p.Cancel
			}
			if _, err := end(ctx, "", spring); err != nil {
				return m.answer(err)
			}
			return func() {
				if s := m.stored().State; s == api.CampaignPaused || s == api.CampaignCancelled { // still
					m.halted = int(m.tick.Load())
					m.note("it is stopped")
				}
			}
		})
	case "resume":
		m.do("resumes", m.resume)
	case "winner":
		m.do("decides", decides)
	case "resend":
		to := rapid.SampledFrom([]string{toFailed, toInDoubt, toNotOpened, toNewcomers}).Draw(m.rt, "to")
		m.halted = 0 // at any step of it
		m.do("resends", func(ctx context.Context, p *process) func() {
			_, err := p.Resend(ctx, "", spring, api.CampaignResend{To: to})
			return m.answer(err)
		})
	case "edit":
		m.edit()
	case "settle":
		m.settled(len(m.runs))
		m.do(settling, func(ctx context.Context, p *process) func() {
			_, err := p.Settle(ctx, "", spring, api.CampaignSettle{All: true})
			return m.answer(err)
		}, m.people...)
	case "recount":
		m.do("recounts", func(ctx context.Context, p *process) func() {
			found, err := p.Recount(ctx, "", spring)
			if found.Changed {
				m.fail("a recount changed the counters")
			}
			return m.answer(err)
		})
	case "test":
		m.do("tests", func(ctx context.Context, p *process) func() {
			_, err := p.Test(ctx, "", spring, api.CampaignTest{To: []string{"tester@c.test"}})
			return m.answer(err)
		})
	}
}

// settling is the name of the operation that counts people in doubt as sent.
const settling = "settles"

// settled notes whom it may count so now: people of a run, or of one that has begun since.
func (m *model) settled(run int) {
	for _, l := range m.letters {
		l.settled = l.settled || l.run >= run && l.doubtful()
	}
}

// resume continues the campaign.
func (m hand) resume(ctx context.Context, p *process) func() {
	m.halted = 0 // at any step of it
	_, err := p.Resume(ctx, "", spring)
	return m.answer(err)
}

func decides(ctx context.Context, p *process) func() {
	_, err := p.Winner(ctx, "", spring, api.CampaignWinner{Variant: "b"})
	return hand{p.m}.answer(err)
}

// edit changes the content. Until that has succeeded, mail may have the old or the new one.
func (m hand) edit() {
	m.edits++
	subject := fmt.Sprintf("edit%d.", m.edits)
	m.subject = ""
	m.do("edits", func(ctx context.Context, p *process) func() {
		_, err := p.Update(ctx, "", spring, api.CampaignPatch{Subject: &subject})
		if err != nil {
			return m.answer(err)
		}
		return func() {
			if m.stored().Subject == subject { // still
				m.subject, m.edited = subject, int(m.tick.Load())
			}
		}
	})
}

// answer notes that a verb failed.
func (m hand) answer(err error) func() {
	return func() {
		if err != nil {
			m.note("it fails: %v", err)
		}
	}
}

// change changes whether a person may be mailed.
func (m hand) change(verb string) {
	p := m.anybody()
	if p.erasing || p.erased {
		return
	}
	if verb != "suppress" && verb != "forgive" {
		m.clock.Advance(2 * time.Second) // subscriptions count in seconds
		defer m.clock.Advance(2 * time.Second)
	}
	barred := func() { m.asked(p) }
	entry := suppression.Entry{Address: p.email, Account: account, Reason: suppression.Manual}
	switch verb {
	case "suppress":
		p.stopped = true
		m.do("suppresses", func(ctx context.Context, at *process) func() {
			if _, err := at.bars.Add(ctx, entry); err != nil {
				return m.answer(err)
			}
			return barred
		}, p)
	case "forgive":
		p.barred = 0
		m.do("forgives", func(ctx context.Context, at *process) func() {
			_, err := at.bars.Remove(ctx, entry)
			return m.answer(err)
		}, p)
	case "leave":
		p.stopped, p.sure = true, false
		m.do("leaves", func(ctx context.Context, at *process) func() {
			_, err := at.audience.Leave(ctx, "", api.SubscriberAccount{}, p.email, news, audience.SourceAPI)
			if err != nil {
				return m.answer(err)
			}
			return barred
		}, p)
	case "subscribe":
		p.barred, p.sure = 0, false
		m.do("subscribes", func(ctx context.Context, at *process) func() {
			_, _, err := at.audience.Create(ctx, "", api.SubscriberRequest{Email: p.email, Consent: consent,
				Upsert: true, Resubscribe: true, Lists: []api.SubscriptionRequest{{ListID: news, State: "subscribed"}}})
			if err != nil {
				return m.answer(err)
			}
			return barred
		}, p)
	case "erase":
		late := func(at *process) bool { // after it, they would be somebody else
			return at.op != nil && at.op.name == "subscribes" && slices.Contains(at.op.about, p)
		}
		if rapid.IntRange(0, 1).Draw(m.rt, "really") == 0 && !slices.ContainsFunc(m.procs[:], late) {
			m.do("erases", m.erase(p), p)
		}
	}
}

// asked notes whether a person is subscribed now, and barred, after that was answered.
func (m hand) asked(p *person) {
	stopped, err := m.eye.outbox.Mailings.Stopped(m.ctx, account, news, []string{p.email})
	m.must(err)
	sub, err := m.eye.audience.Get(m.ctx, "", api.SubscriberAccount{}, p.email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		m.must(err)
	}
	p.sure, p.since = true, m.clock.Now()
	p.on = slices.ContainsFunc(sub.Lists, func(s api.Subscription) bool { return s.State == "subscribed" })
	if stopped[0] != nil && p.barred == 0 {
		p.barred = int(m.tick.Load())
	}
	m.note("%s is subscribed: %v, barred: %v", p.email, p.on, stopped[0] != nil)
}

// errBusy keeps an erasure from waiting for a message that is being sent.
var errBusy = errors.New("a message is being sent")

// erase removes a person from everywhere, in the order of package app. It is repeated until it succeeds.
func (m hand) erase(p *person) func(ctx context.Context, at *process) func() {
	p.erasing, p.stopped, p.sure = true, true, false
	return func(ctx context.Context, at *process) func() {
		traces, err := message.NewTraces(p.email)
		if err != nil {
			return m.answer(err)
		}
		w := outbox.Whom{Traces: traces, Account: account}
		err = at.bars.Erase(ctx, account, p.email, func(int) error { return nil })
		if err == nil {
			_, err = at.Erase(ctx, w)
		}
		if err == nil {
			err = at.audience.Erase(ctx, account, p.email,
				func(int, int) error { return nil })
		}
		if err == nil && m.active() {
			err = errBusy
		}
		if err == nil {
			err = at.outbox.Operations.Erase(ctx, w, func(string, int) error { return nil })
		}
		if err != nil {
			return m.answer(err)
		}
		return func() {
			p.erasing, p.erased, p.on, p.barred = false, true, false, int(m.tick.Load())
			m.note("%s is erased", p.email)
		}
	}
}

// touch changes a letter, or the data about it.
func (m hand) touch(verb string, l *letter) {
	m.note("it is about %s", l)
	switch verb {
	case "open":
		if l.copies() == 0 {
			return
		}
		l.settled, l.opened = true, true
		m.do("learns", func(ctx context.Context, p *process) func() {
			_, err := p.Facts().RecordFacts(ctx, []outbox.Fact{{MessageID: l.id, Type: event.TrackOpen,
				At: m.clock.Now(), Account: account, Recipient: l.to.email}})
			return m.answer(err)
		}, l.to)
	case "replay":
		l.replays++
		m.do("replays", func(ctx context.Context, p *process) func() {
			_, err := p.outbox.Operations.Replay(ctx, l.id, api.Corrections{})
			return m.answer(err)
		}, l.to)
	case "cancel message":
		l.cancelled = true
		m.do("cancels a message", func(ctx context.Context, p *process) func() {
			_, err := p.outbox.Operations.Cancel(ctx, l.id, outbox.ReasonAPI)
			return m.answer(err)
		}, l.to)
	case "retry":
		l.replays++ // a dead letter's
		m.do("retries", func(ctx context.Context, p *process) func() {
			_, err := p.outbox.Operations.Retry(ctx, l.id)
			return m.answer(err)
		}, l.to)
	}
}

// active reports whether a message is being sent.
func (m hand) active() bool {
	n, err := m.eye.db.Client().ZCard(m.ctx, leasesKey()).Result()
	return n > 0 || err != nil
}
