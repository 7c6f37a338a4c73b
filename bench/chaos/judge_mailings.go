package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
)

// The states of recipients that the judge looks at.
const (
	stateSent         = "sent"
	stateInDoubt      = "inDoubt"
	stateSuppressed   = "suppressed"
	stateUnsubscribed = "unsubscribed"
	stateSending      = "sending"
	stateDeferred     = "deferred"
)

// attemptLasts is how long before the MAIL of an attempt of the outbox it may have asked whether the person
// may be mailed. A first attempt asks after its MAIL.
const attemptLasts = 30 * time.Second

// mailed is what the campaigns of the ledger come to. People are counted once for each campaign.
type mailed struct {
	campaigns, cancelled, unended int
	people                        int // listed
	once, doubted, twiceDoubted   int
	without                       map[string]int // people who did not get it, by the state that says so

	twice     int // got it twice, and nothing says doubt
	lied      int // told sent, not delivered
	forgotten int // neither mailed nor listed
	otherwise int // got it, and nothing says that they may have
	unwished  int // left out as one who left or was suppressed, and did not ask for it
	open      int // still sending or deferred at the end
	late      int // mailed by an attempt that began after the answer to their wish
	shut      int // mailed by an attempt that began after the answer to a pause or cancel
	mangled   int
	strangers int // listed twice, or nobody's address
	miscount  int // numbers in the stats that differ from the list's
	recounted int // campaigns whose recount changed a counter

	faults []string
}

func (v *mailed) blame(m *mailing, counter *int, format string, args ...any) {
	*counter++
	v.faults = append(v.faults, newsletter(m.number)+": "+fmt.Sprintf(format, args...))
}

// mailings holds the campaigns to their promises. doubted says which messages an event calls in doubt.
func (v *mailed) mailings(all *mailings, doubted map[string]bool) {
	for _, m := range all.all {
		if m == nil {
			continue
		}
		v.campaigns++
		if m.mangled > 0 {
			v.blame(m, &v.mangled, "%d mails that are not whole", m.mangled)
		}
		v.times(m, all)
		if m.end == nil {
			v.blame(m, &v.unended, "it never came to its end")
			continue
		}
		if m.end.stats.State == api.CampaignCancelled {
			v.cancelled++
		}
		for n := range all.people {
			v.person(m, n, all.wishes[n], doubted)
		}
		v.numbers(m, all.people)
	}
}

// times looks for emails from attempts that began when none may.
func (v *mailed) times(m *mailing, all *mailings) {
	for _, n := range slices.Sorted(maps.Keys(m.mails)) {
		for _, c := range m.mails[n] {
			asked := c.began
			if c.again {
				asked = asked.Add(-attemptLasts)
			}
			if w := all.wishes[n]; w != nil && !w.answered.IsZero() && asked.After(w.answered) {
				v.blame(m, &v.late, "%s was mailed by an attempt that began %s after the answer to the wish",
					person(n), c.began.Sub(w.answered))
			}
			for _, s := range m.shut {
				if asked.After(s.from) && (s.to.IsZero() || c.began.Before(s.to)) {
					v.blame(m, &v.shut, "%s was mailed by an attempt that began %s after it was stopped", person(n),
						c.began.Sub(s.from))
				}
			}
		}
	}
}

// person judges the result of one person in an ended campaign.
func (v *mailed) person(m *mailing, n int, w *wish, doubted map[string]bool) {
	copies, rows := len(m.mails[n]), m.end.listed[n]
	if len(rows) == 0 {
		// in a cancelled campaign, people who were not reached are not listed
		if copies > 0 || !m.cancelled && !m.wishedBefore(w) {
			v.blame(m, &v.forgotten, "%s has %d mails, and is not listed", person(n), copies)
		}
		return
	}
	v.people++
	if len(rows) > 1 {
		v.blame(m, &v.strangers, "%s is listed %d times", person(n), len(rows))
	}
	state := rows[0].state
	doubt := rows[0].doubts > 0 || doubted[rows[0].queueID]
	switch {
	case state == stateSending, state == stateDeferred:
		v.blame(m, &v.open, "%s is %s, and the campaign has ended", person(n), state)
	case copies > 1 && doubt:
		v.twiceDoubted++
	case copies > 1:
		v.blame(m, &v.twice, "%s got it %d times, is %s, and nothing says doubt", person(n), copies, state)
	case copies == 1 && state == stateSent:
		v.once++
	case copies == 1 && (state == stateInDoubt || doubt):
		v.doubted++
	case copies == 1:
		v.blame(m, &v.otherwise, "%s got it, is %s, and nothing says doubt", person(n), state)
	case state == stateSent:
		v.blame(m, &v.lied, "%s is sent, and no relay took it", person(n))
	case (state == stateSuppressed || state == stateUnsubscribed) && w == nil:
		v.blame(m, &v.unwished, "%s is %s, and never asked for it", person(n), state)
	default:
		if v.without == nil {
			v.without = map[string]int{}
		}
		v.without[state]++
	}
}

// wishedBefore reports whether a person may have asked not to be mailed before the run began, and so is not
// of it. Lists know the second in which somebody left.
func (m *mailing) wishedBefore(w *wish) bool {
	started := m.end.stats.Started
	return w != nil && started != nil && !started.Before(w.asked.Truncate(time.Second))
}

// numbers compares the stats of a campaign with the list of its recipients.
func (v *mailed) numbers(m *mailing, people int) {
	counted := map[string]int{}
	for n, rows := range m.end.listed {
		if n < 0 || n >= people {
			v.blame(m, &v.strangers, "%d recipients are nobody's address", len(rows))
		}
		for _, row := range rows {
			counted[row.state]++
		}
	}
	s := m.end.stats.States
	for _, one := range []struct {
		state string
		says  int
	}{{stateSent, s.Sent}, {stateInDoubt, s.InDoubt}, {stateSuppressed, s.Suppressed},
		{stateUnsubscribed, s.Unsubscribed}, {"bounced", s.Bounced}, {"failed", s.Failed},
		{"cancelled", s.Cancelled}} {
		unlisted := m.cancelled && one.state == "cancelled" && one.says > counted[one.state] // had no turn
		if one.says != counted[one.state] && !unlisted {
			v.blame(m, &v.miscount, "the stats say %d %s, and %d are listed", one.says, one.state,
				counted[one.state])
		}
	}
	if sum := s.Total(); sum != m.end.stats.Audience {
		v.blame(m, &v.miscount, "the stats say %d people, and %d in all states", m.end.stats.Audience, sum)
	}
	if m.end.recounted {
		v.blame(m, &v.recounted, "a recount changed its counters")
	}
}

// mailings writes the part of the table about campaigns.
func (t *table) mailings(v mailed) {
	if v.campaigns == 0 {
		return
	}
	t.title("Campaigns")
	t.tell("sent", v.campaigns)
	t.tell("  of them cancelled", v.cancelled)
	t.want("that never came to an end", v.unended, 0)
	t.tell("people listed, of all campaigns", v.people)
	t.tell("got it once", v.once)
	t.tell("got it once, marked in doubt", v.doubted)
	t.tell("got it twice or more, marked in doubt", v.twiceDoubted)
	for _, state := range slices.Sorted(maps.Keys(v.without)) {
		t.tell("did not get it: "+state, v.without[state])
	}
	t.want("got it twice or more WITHOUT doubt", v.twice, 0)
	t.want("FORGOTTEN: neither mailed nor listed", v.forgotten, 0)
	t.want("told sent, not delivered", v.lied, 0)
	t.want("got it, told otherwise, WITHOUT doubt", v.otherwise, 0)
	t.want("left out as one who left, and did not", v.unwished, 0)
	t.want("still under way at the end", v.open, 0)
	t.want("mailed after the answer to their wish", v.late, 0)
	t.want("mailed after the answer to a pause or cancel", v.shut, 0)
	t.want("mails that arrived incomplete", v.mangled, 0)
	t.want("listed twice, or nobody", v.strangers, 0)
	t.want("numbers of the stats that are not those of the people", v.miscount, 0)
	t.want("campaigns of which a recount changed a counter", v.recounted, 0)
}
