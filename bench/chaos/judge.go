package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/api/event"
)

// verdict is what the ledger comes to. Copies and last words are counted for each recipient, the rest for
// each message or event.
type verdict struct {
	submitted, accepted, recipients, unanswered, refused, twoAnswers int

	once, twiceDoubted, twice         int // delivered
	cancelled, failed                 int // not delivered, and said so
	lost, liedSent                    int
	failedThough, failedDoubted       int // delivered, and told that it failed
	cancelledThough, cancelledDoubted int // delivered, although a client was answered that it was withdrawn
	// delivered and told otherwise, where Postroom no longer knows whether it was in doubt
	unknown                              int
	missing, extra                       int // last words
	doubled                              int // events that stand in the stream more than once
	unqueued                             int // accepted messages without messageQueued
	mangled, cancelForgotten, replayless int

	events, deliveries, repeated, undelivered, invented int // webhooks

	mailed   mailed // campaigns
	digested digested

	offenders []offender
	unheard   []unheard
}

// unheard is an event that an endpoint never got.
type unheard struct {
	endpoint string
	event    *fact
}

// offender is a message with which a promise was broken.
type offender struct {
	number int
	why    string
}

// lastWords are the events that end a recipient.
func lastWord(t event.Type) bool {
	return t == event.MessageSent || t == event.MessageFailed || t == event.MessageCancelled ||
		t == event.MessageSuppressed
}

// judge holds the ledger to the promises. It is a pure function of the ledger and of the names of the webhook
// endpoints.
func judge(l *ledger, endpoints []string) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	var v verdict
	byMessage, doubted := map[string][]*fact{}, map[string]bool{}
	for _, f := range l.order {
		byMessage[f.queueID] = append(byMessage[f.queueID], f)
		doubted[f.queueID] = doubted[f.queueID] || f.doubt
	}
	for _, s := range l.stories {
		if s != nil {
			v.message(s, byMessage)
		}
	}
	v.mailed.mailings(&l.mailings, doubted)
	v.digested.digests(&l.digests, l.order, doubted)
	v.webhooks(l, endpoints)
	return v
}

// blame counts an offence.
func (v *verdict) blame(s *story, counter *int, format string, args ...any) {
	*counter++
	v.offenders = append(v.offenders, offender{s.number, fmt.Sprintf(format, args...)})
}

func (v *verdict) message(s *story, byMessage map[string][]*fact) {
	v.submitted++
	switch {
	case s.refused != "":
		v.blame(s, &v.refused, "refused for good: %s", s.refused)
		return
	case len(s.queueIDs) == 0:
		v.blame(s, &v.unanswered, "its submit was never answered")
		return
	case len(s.queueIDs) > 1:
		v.blame(s, &v.twoAnswers, "one key, and several messages: %v", s.queueIDs)
	}
	v.accepted++
	facts := byMessage[s.queueIDs[0]]
	if n := count(facts, func(f *fact) bool { return f.kind == event.MessageQueued }); n != 1 {
		v.blame(s, &v.unqueued, "%d messageQueued events", n)
	}
	if s.mangled > 0 {
		v.blame(s, &v.mangled, "%d copies that are not whole", s.mangled)
	}
	ended := func(f *fact) bool { return f.kind == event.MessageCancelled || f.kind == event.MessageFailed }
	if s.cancelled && count(facts, ended) == 0 {
		v.blame(s, &v.cancelForgotten, "a client was told that it is cancelled, and no event says so")
	}
	if n := count(facts, func(f *fact) bool { return f.kind == event.MessageReplayed }); n < s.replayed {
		v.blame(s, &v.replayless, "clients were told of %d replays, and %d events say so", s.replayed, n)
	}
	for _, f := range facts {
		if f.again > 0 {
			v.blame(s, &v.doubled, "event %s, %s, stands %d times in the stream", f.id, f.kind, 1+f.again)
		}
	}
	for _, address := range s.to {
		v.recipient(s, address, facts)
	}
}

// recipient judges one recipient's result.
func (v *verdict) recipient(s *story, address string, facts []*fact) {
	v.recipients++
	var words, replays int
	var last event.Type
	doubt := s.doubts > 0
	for _, f := range facts {
		if !slices.Contains(f.to, address) {
			continue
		}
		doubt = doubt || f.doubt
		switch {
		case lastWord(f.kind):
			words++
			last = f.kind
		case f.kind == event.MessageReplayed:
			replays++
		}
	}
	switch {
	case words < 1+replays:
		v.blame(s, &v.missing, "%s: %d last words, want %d", address, words, 1+replays)
	case words > 1+replays:
		v.blame(s, &v.extra, "%s: %d last words, want %d", address, words, 1+replays)
	}
	v.delivery(s, address, len(s.copies[address]), last, doubt)
}

// delivery compares the copies that the relays took for a recipient with the last word about it.
func (v *verdict) delivery(s *story, address string, copies int, last event.Type, doubt bool) {
	// what was sent says by its event whether it was in doubt
	forgotten := s.doubts < 0 && last != event.MessageSent
	switch {
	case copies == 0 && last == event.MessageCancelled:
		v.cancelled++
	case copies == 0 && last == event.MessageFailed:
		v.failed++
	case copies == 0:
		if last == event.MessageSent {
			v.liedSent++
		}
		v.blame(s, &v.lost, "%s: accepted, never delivered, last word %q", address, last)
	case copies > 1 && doubt:
		v.twiceDoubted++
	case copies > 1 && !forgotten:
		v.blame(s, &v.twice, "%s: delivered %d times, and nothing says that it was in doubt", address, copies)
	default:
		v.once++
	}
	if copies > 0 {
		v.toldOtherwise(s, address, last, doubt, forgotten)
	}
}

// toldOtherwise counts a recipient that got the message and was given up, or withdrawn.
func (v *verdict) toldOtherwise(s *story, address string, last event.Type, doubt, forgotten bool) {
	switch {
	case last != event.MessageFailed && last != event.MessageCancelled:
	case doubt && last == event.MessageFailed:
		v.failedDoubted++
	case doubt:
		v.cancelledDoubted++
	case forgotten:
		v.unknown++
	case last == event.MessageFailed:
		v.blame(s, &v.failedThough, "%s: delivered, told failed, and nothing says that it was in doubt", address)
	default:
		v.blame(s, &v.cancelledThough, "%s: delivered, told cancelled, and nothing says that it was in doubt",
			address)
	}
}

// webhooks compares the stream with what the receivers got.
func (v *verdict) webhooks(l *ledger, endpoints []string) {
	v.events = len(l.order)
	known := map[string]bool{}
	for _, f := range l.order {
		known[f.id] = true
		for _, e := range endpoints {
			switch n := f.received[e]; {
			case n == 0:
				v.undelivered++
				v.unheard = append(v.unheard, unheard{e, f})
			default:
				v.deliveries += n
				v.repeated += n - 1
			}
		}
	}
	for id := range l.facts {
		if !known[id] {
			v.invented++
		}
	}
}

func count(facts []*fact, is func(*fact) bool) int {
	n := 0
	for _, f := range facts {
		if is(f) {
			n++
		}
	}
	return n
}

// recovery is how long messages waited for a kill of their worker to be noticed, at most.
type recovery struct {
	storm, calm               int // kills
	longestStorm, longestCalm time.Duration
	stuck                     []kill // kills after which a message never moved on
}

// recoveries sums up the kills.
func recoveries(kills []kill) recovery {
	var r recovery
	for _, k := range kills {
		n, longest := &r.storm, &r.longestStorm
		if k.calm {
			n, longest = &r.calm, &r.longestCalm
		}
		*n++
		*longest = max(*longest, k.took)
		if len(k.pending) > 0 {
			r.stuck = append(r.stuck, k)
		}
	}
	return r
}
