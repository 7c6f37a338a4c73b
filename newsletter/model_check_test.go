package newsletter

import (
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/newsletter/sendlog"
)

// judge compares what Postroom says with what the model knows.
type judge struct{ *model }

func leasesKey() string { return redisdb.Key(0, "leases") }

// started is a run, and what the model knew when it began.
type started struct {
	number int
	at     int // tick
	began  time.Time
	wants  map[*person]want // to whom it goes, or not; others: that isn't certain
	open   map[*person]bool // that is certain once their mail of the runs before is
	to     string
	before []map[string]string

	troubled bool // a batch of it was met by a fault
}

// want is whether a run goes to somebody, and since when that is certain.
type want struct {
	yes bool
	at  int // tick
}

// newRun notes to whom a run goes that has begun.
func (m judge) newRun(one *campaign) *started {
	r := &started{number: len(one.Runs), at: int(m.tick.Load()), began: one.run().Began, to: one.run().To,
		wants: map[*person]want{}, open: map[*person]bool{}}
	for n := 1; n < r.number; n++ {
		r.before = append(r.before, m.listed(n))
	}
	for _, p := range m.people {
		if p.sure && !p.erased && !p.erasing && p.since.Before(r.began.Add(-time.Second)) {
			r.open[p] = true
		}
	}
	m.decide(r, one)
	return r
}

// decide notes to whom the last run goes. It waits for mail of cancelled runs that is under way. If another
// run's mail is, by a replay, the run may go to the person or not: one of both does.
func (m judge) decide(r *started, one *campaign) {
	for p := range r.open {
		states := m.statesOf(p, one, len(one.Runs))
		waits, replayed := false, false
		for i, s := range states {
			under := s == sendlog.Taken || s == sendlog.AtDot || s == sendlog.Deferred
			waits = waits || under && one.Runs[i].cancelled()
			replayed = replayed || under && one.Runs[i].Sent
		}
		if waits {
			continue
		}
		delete(r.open, p)
		if !replayed && p.sure && !p.erased && !p.erasing && p.since.Before(r.began.Add(-time.Second)) {
			r.wants[p] = want{p.on && m.wanted(p, one, states), int(m.tick.Load())}
		}
	}
}

// wanted reports whether the last run of a campaign goes to a subscriber, by the states of the runs before.
func (m judge) wanted(p *person, one *campaign, states []sendlog.State) bool {
	if len(one.Runs) == 1 {
		return true
	}
	had, got, opened := sendlog.Waiting, false, false
	for i, s := range states {
		if s != sendlog.Waiting {
			had = s
		}
		got = got || s == sendlog.Sent || s == sendlog.InDoubt || s == sendlog.Deferred || s == sendlog.AtDot
		chunk, offset := sendlog.ChunkOf(p.ordinal)
		set, err := m.eye.Log.Bits(m.ctx, sendlog.Run{Campaign: one.Number, Number: i + 1}, chunk, sendlog.Opened)
		m.must(err)
		opened = opened || set.Has(offset)
	}
	return map[string]bool{toFailed: had == sendlog.Failed && !got, toInDoubt: had == sendlog.InDoubt,
		toNotOpened: had == sendlog.Sent && !opened, toNewcomers: had == sendlog.Waiting}[one.run().To]
}

// recipients returns the recipients of a run.
func (m judge) recipients(run int) []api.CampaignRecipient {
	page, err := m.eye.Recipients(m.ctx, "", spring, api.CampaignRecipientQuery{Run: run,
		CursorQuery: api.CursorQuery{PageSize: 1000}})
	m.must(err)
	return page.Recipients
}

// listed returns a run's recipients' states, by the ids of their mail.
func (m judge) listed(run int) map[string]string {
	all := map[string]string{}
	for _, r := range m.recipients(run) {
		all[r.QueueID] = r.State
	}
	return all
}

// check compares the results with the promises.
func (m judge) check() {
	for n := range m.runs {
		m.checkRun(m.runs[n], m.recipients(n+1))
	}
	found, err := m.eye.Recount(m.ctx, "", spring)
	m.must(err)
	if found.Changed {
		m.fail("a recount changed the counters in the end: %+v", found)
	}
	if len(m.runs) > 0 {
		m.checkCounters()
	}
	if m.wrong != nil {
		m.rt.Fatalf("%v\n%s", m.wrong, m.story())
	}
}

// checkRun compares the recipients of a run with what the relay got, and with whom the run goes to.
func (m judge) checkRun(r *started, all []api.CampaignRecipient) {
	has := map[*person]bool{}
	for _, one := range all {
		l := m.letter(one.QueueID)
		has[l.to] = true
		if !m.may(l, one.State) {
			m.fail("%s is %s, and the relay saw %+v; %+v", l, one.State, l.tries, *l)
		}
		m.checkMessage(l, one)
		if strings.Contains(one.Response, "by another message") && !m.later(l) {
			m.fail("%s: its message ended in favour of a later run, which has nothing for the person: %q", l,
				one.Response)
		}
		if wants, sure := r.wants[l.to]; sure && !wants.yes && l.to.touched <= wants.at {
			m.fail("%s: the run doesn't go to the person, who is %s", l, one.State)
		}
	}
	stored := m.stored()
	for p, wants := range r.wants {
		if wants.yes && !has[p] && stored.Runs[r.number-1].Sent && p.touched <= wants.at {
			m.fail("run %d: %s was forgotten", r.number, p.email)
		}
	}
	for n, before := range r.before {
		now := m.listed(n + 1)
		for id, state := range before {
			final := state != "sending" && state != "deferred"
			if l := m.letter(id); final && now[id] != state && l.to.touched <= r.at {
				m.fail("%s was %s when run %d began, and is %s", l, state, r.number, now[id])
			}
		}
	}
}

// later reports whether a later run has somebody.
func (m judge) later(l *letter) bool {
	for n := l.run + 1; n <= len(m.runs); n++ {
		if slices.ContainsFunc(m.recipients(n), func(r api.CampaignRecipient) bool {
			return m.letter(r.QueueID).to == l.to
		}) {
			return true
		}
	}
	return false
}

// may reports whether a state agrees with what the relay saw, and with what was done to the letter.
func (m judge) may(l *letter, state string) bool {
	if state == "sent" {
		return l.copies() > 0 || l.settled && l.doubtful()
	}
	switch state {
	case "inDoubt":
		return l.doubtful()
	case "bounced":
		return l.had(nobody)
	case "cancelled":
		if !l.cancelled && !l.to.erased && !m.cancelled() {
			return false
		}
	case "suppressed", "unsubscribed":
		if !l.to.stopped && !m.refused(l.to) {
			return false
		}
	case "failed":
	default:
		return false // it isn't final
	}
	if l.copies() > 0 {
		return l.doubtful()
	}
	if state == "failed" {
		// a run doesn't go on to somebody whose mail of an earlier one was replayed
		replayed := l.replays > 0 || l.to.touched > m.runs[l.run-1].at
		return l.had(unwanted) || len(l.tries) >= mostAttempts || l.to.stopped || l.doubtful() || replayed
	}
	return true
}

// cancelled reports whether a run was cancelled.
func (m judge) cancelled() bool {
	return slices.ContainsFunc(m.stored().Runs, func(r sending) bool { return r.Ended != nil && !r.Sent })
}

// refused reports whether the relay does not know a person, who is suppressed since.
func (m judge) refused(p *person) bool {
	for _, l := range m.letters {
		if l.to == p && l.had(nobody) {
			return true
		}
	}
	return false
}

// checkMessage compares a recipient with the message of the outbox that it became, if it did.
func (m judge) checkMessage(l *letter, one api.CampaignRecipient) {
	direct, made := 0, 0
	for _, t := range l.tries {
		switch {
		case t.reply == aborted || t.direct && t.reply == away:
		case t.direct:
			direct++
			made++
		default:
			made++
		}
	}
	// whoever is not to get the mail any more may be settled before the event about the last attempt is applied
	early := one.Attempts < made && (one.State == "cancelled" || l.to.stopped)
	if !l.troubled && !l.to.erased && one.Attempts != made && !early {
		m.fail("%s has %d attempts, and the relay saw %+v", l, one.Attempts, l.tries)
	}
	if most := mostAttempts * (1 + l.replays); !l.troubled && made > most {
		m.fail("%s: %d attempts, of %d", l, made, most)
	}
	logged, err := m.eye.outbox.Reader.Message(m.ctx, l.id)
	if fault.Is(err, fault.NotFound) {
		if made > direct && !l.to.erased {
			m.fail("%s: the outbox knows no message", l)
		}
		return
	}
	m.must(err)
	ends := map[api.MessageStatus][]string{
		api.StatusSent: {"sent"}, api.StatusDead: {"failed", "bounced"}, api.StatusCancelled: {"cancelled"},
		api.StatusFailed:     {"failed", "bounced", "unsubscribed", "suppressed", "cancelled"},
		api.StatusSuppressed: {"suppressed", "unsubscribed"},
	}[logged.Status]
	if logged.InDoubt > 0 && logged.Status == api.StatusDead { // a refused address says that it got none
		ends = []string{"inDoubt", "bounced"}
	}
	if logged.InDoubt > 0 && logged.Status == api.StatusCancelled {
		ends = []string{"inDoubt"}
	}
	if l.settled && slices.Contains(ends, "inDoubt") {
		ends = append(ends, "sent")
	}
	if !slices.Contains(ends, one.State) {
		m.fail("%s is %s, and its message is %s", l, one.State, logged.Status)
	}
}

// checkCounters compares the numbers of each run with its recipients.
func (m judge) checkCounters() {
	for n := range m.runs {
		stats, err := m.eye.Stats(m.ctx, "", spring, n+1)
		m.must(err)
		all := m.recipients(n + 1)
		want, opened := counted(all, "")
		if m.unsent(n + 1) {
			want.Cancelled = stats.States.Cancelled // those who were not looked at count, too
		}
		if diff := cmp.Diff(want, stats.States); diff != "" {
			m.fail("the counters of run %d (-recipients +counters):\n%s", n+1, diff)
		}
		sure := !m.resend || !m.unsent(n+1) // else somebody who opened it may wait again, and is not listed
		if stats.Opened != opened && sure {
			m.fail("run %d: %d opened, counted %d", n+1, opened, stats.Opened)
		}
		for _, v := range stats.Variants {
			want, opened := counted(all, v.Variant)
			if diff := cmp.Diff(want, v.States); diff != "" || v.Opened != opened && sure {
				m.fail("variant %s of run %d: %d opened, counted %d (-recipients +counters):\n%s", v.Variant, n+1,
					opened, v.Opened, diff)
			}
		}
		m.checkDomains(n+1, stats.Domains)
	}
}

// counted counts recipients by their states, only one variant's if it is given.
func counted(all []api.CampaignRecipient, variant string) (s api.CampaignStates, opened int) {
	for _, r := range all {
		if variant != "" && r.Variant != variant {
			continue
		}
		*map[string]*int{"sent": &s.Sent, "deferred": &s.Deferred, "suppressed": &s.Suppressed,
			"unsubscribed": &s.Unsubscribed, "bounced": &s.Bounced, "failed": &s.Failed, "inDoubt": &s.InDoubt,
			"cancelled": &s.Cancelled, "sending": &s.Sending}[r.State]++
		if r.Opened {
			opened++
		}
	}
	return s, opened
}

// checkDomains compares the numbers of a run by domain with what the relay got from its batches. What a batch
// counted may be lost with its process.
func (m judge) checkDomains(run int, all []api.CampaignDomain) {
	has := map[string]api.CampaignDomain{}
	for _, d := range all {
		has[d.Domain] = api.CampaignDomain{Sent: d.Sent, Bounced: d.Bounced, Failed: d.Failed}
	}
	want := map[string]api.CampaignDomain{}
	for _, l := range m.letters {
		for _, t := range l.tries {
			if l.run != run || !t.direct {
				continue
			}
			name := domainOf(l.to.email)
			d := want[name]
			switch t.reply {
			case "":
				d.Sent++
			case nobody:
				d.Bounced++
			case unwanted:
				d.Failed++
			}
			if d != want[name] {
				want[name] = d
			}
		}
	}
	for name, d := range has {
		if of := want[name]; d.Sent > of.Sent || d.Bounced > of.Bounced || d.Failed > of.Failed {
			m.fail("run %d: %s has %+v, and the relay saw %+v", run, name, d, of)
		}
		if d == (api.CampaignDomain{}) { // it has opens alone
			delete(has, name)
		}
	}
	if diff := cmp.Diff(want, has); diff != "" && !m.runs[run-1].troubled {
		m.fail("the domains of run %d (-relay +counters):\n%s", run, diff)
	}
}

// unsent reports whether a run was cancelled.
func (m judge) unsent(run int) bool {
	return !m.stored().Runs[run-1].Sent
}
