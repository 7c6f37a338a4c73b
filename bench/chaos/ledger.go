package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api/event"
)

// ledger is what everybody but Postroom knows: clients' answers, relays' messages, webhook receivers' events,
// and the injected failures. It is safe for concurrent use.
type ledger struct {
	began time.Time

	mu       sync.Mutex
	stories  []*story // by number
	facts    map[string]*fact
	order    []*fact // in stream order
	faults   []fault
	injected map[string]int // by kind
	told     map[string]int // what clients were answered, by kind
	kills    []kill
	deaths   []string // processes that ended on their own
	oddities []string // what none of us can have caused
	accepted int
	copies   int
	received int

	mailings mailings
	digests  digests
}

// story is the record of one message.
type story struct {
	plan
	queueIDs  []string // in clients' answers, each once
	refused   string   // why it was refused permanently; empty if it was not
	cancelled bool     // a client was answered that it was withdrawn
	replayed  int      // how often a client was answered that it is queued again
	copies    map[string][]time.Time
	mangled   int // copies that were not whole
	// attempts in doubt, where Postroom was asked about the message; -1: it was not, or did not know
	doubts int
	notes  []note
}

type note struct {
	at   time.Time
	text string
}

// fact is an event of Postroom's stream.
type fact struct {
	id      string
	kind    event.Type
	at      time.Time
	queueID string
	to      []string
	doubt   bool
	detail  string
	again   int // how often more it stands in the stream
	// for digests: the run, its reader (-1 for none), the mail's Message-ID where it is about the mail, and how
	// many events the run had and returned where it is about the run
	run, messageID           string
	reader, events, returned int
	received                 map[string]int // by endpoint
}

// fault is a trouble that was made.
type fault struct {
	kind, target string
	from, to     time.Time // to is zero while it lasts
}

func newLedger(messages, people, campaigns int) *ledger {
	return &ledger{mailings: newMailings(people, campaigns), began: time.Now(),
		stories: make([]*story, messages), facts: map[string]*fact{}, digests: newDigests(0, 0),
		injected: map[string]int{}, told: map[string]int{}}
}

// open begins the story of a message.
func (l *ledger) open(p plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stories[p.number] = &story{plan: p, copies: map[string][]time.Time{}, doubts: -1}
}

// of runs a change of the thing with a number, and notes it when it says something. Unknown numbers are an
// oddity.
func of[T any](l *ledger, all []*T, number int, odd string, change func(*T) (notes *[]note, text string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number < 0 || number >= len(all) || all[number] == nil {
		l.oddities = append(l.oddities, fmt.Sprintf(odd, number))
		return
	}
	if notes, text := change(all[number]); text != "" {
		*notes = append(*notes, note{time.Now(), text})
	}
}

// about runs a change of one story, as of.
func (l *ledger) about(number int, change func(*story) string) {
	of(l, l.stories, number, "message %d came up, which nobody submitted", func(s *story) (*[]note, string) {
		return &s.notes, change(s)
	})
}

// note adds a line to the story of a message.
func (l *ledger) note(number int, format string, args ...any) {
	l.about(number, func(*story) string { return fmt.Sprintf(format, args...) })
}

// answered notes that a submit was answered with a queue id.
func (l *ledger) answered(number int, queueID, by, status string) {
	l.about(number, func(s *story) string {
		if len(s.queueIDs) == 0 {
			l.accepted++
		}
		if !slices.Contains(s.queueIDs, queueID) {
			s.queueIDs = append(s.queueIDs, queueID)
		}
		l.told["submit "+status]++
		return fmt.Sprintf("client: %s accepted it as %s (%s)", by, queueID, status)
	})
}

// took notes that a relay took the message for some recipients, whatever it then said.
func (l *ledger) took(number int, to []string, whole bool, how string) {
	l.about(number, func(s *story) string {
		for _, address := range to {
			s.copies[address] = append(s.copies[address], time.Now())
			l.copies++
		}
		if !whole {
			s.mangled++
		}
		return fmt.Sprintf("%s took it for %s", how, strings.Join(to, " "))
	})
}

// happened notes an event of the stream. One that stands there twice is noted once, and counted.
func (l *ledger) happened(f *fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.facts[f.id]
	switch {
	case known == nil:
		l.facts[f.id] = f
	case known.kind == "": // a webhook was faster
		f.received = known.received
		*known = *f
	default:
		known.again++
		return
	}
	l.order = append(l.order, l.facts[f.id])
}

// got notes that a webhook receiver got an event.
func (l *ledger) got(endpoint, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.facts[id]
	if f == nil {
		f = &fact{id: id}
		l.facts[id] = f
	}
	if f.received == nil {
		f.received = map[string]int{}
	}
	f.received[endpoint]++
	l.received++
}

// count counts an answer that clients got.
func (l *ledger) count(answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[answer]++
}

// died notes that a process ended on its own.
func (l *ledger) died(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaths = append(l.deaths, fmt.Sprintf("%s %s", l.since(time.Now()), fmt.Sprintf(format, args...)))
}

// trouble notes and counts a fault that begins; the returned function notes its end.
func (l *ledger) trouble(kind, target string) (over func()) {
	l.mu.Lock()
	l.injected[kind]++
	l.mu.Unlock()
	return l.begins(kind, target)
}

// begins is trouble without a count, for what is a part of a trouble.
func (l *ledger) begins(kind, target string) (over func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.faults)
	l.faults = append(l.faults, fault{kind: kind, target: target, from: time.Now()})
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.faults[n].to = time.Now()
	}
}

// nature notes a fault that was not made, and is over.
func (l *ledger) nature(kind, target string, from time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fault{kind: kind, target: target, from: from, to: time.Now()})
	l.injected[kind]++
}

// during lists the faults that overlap a stretch of time.
func (l *ledger) during(from, to time.Time) []fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []fault
	for _, f := range l.faults {
		if f.from.Before(to) && (f.to.IsZero() || f.to.After(from)) {
			out = append(out, f)
		}
	}
	return out
}

// since is a moment as people read it: how long after the beginning.
func (l *ledger) since(t time.Time) string { return fmt.Sprintf("%8.3fs", t.Sub(l.began).Seconds()) }

// moved is a number that changes whenever anything comes about.
func (l *ledger) moved() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted + l.copies + l.received + len(l.order) + len(l.kills) + l.mailings.mails + l.digests.told +
		l.digests.mails
}

// progress is the state of things in a line.
func (l *ledger) progress() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%7s  accepted %d of %d  copies delivered %d, of campaigns %d, of digests %d  events %d  "+
		"webhooks received %d  faults %d",
		time.Since(l.began).Round(time.Second), l.accepted, len(l.stories), l.copies, l.mailings.mails,
		l.digests.mails, len(l.order), l.received, len(l.faults))
}
