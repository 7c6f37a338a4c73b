package ui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
)

// step is one entry in the timeline of a message: an attempt with its events, an event without attempt, or
// the message's end, which has neither.
type step struct {
	At      time.Time
	Attempt *api.Attempt // nil: none
	Events  []api.MessageEvent
}

// steps merges attempts, events and the end of a message by time, without the event messageQueued: the page
// begins with that.
func steps(m api.LoggedMessage, events []api.MessageEvent) []step {
	log, all := m.Log, make([]step, 0, len(m.Log)+len(events)+1)
	for i := range log {
		all = append(all, step{At: log[i].Start, Attempt: &log[i]})
	}
	for _, e := range events {
		if e.Event == "messageQueued" {
			continue
		}
		if i := slices.IndexFunc(all, func(s step) bool { return s.made(e) }); i >= 0 {
			all[i].Events = append(all[i].Events, e)
			continue
		}
		all = append(all, step{At: e.Date, Events: []api.MessageEvent{e}})
	}
	if m.Ended != nil {
		all = append(all, step{At: *m.Ended})
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Or(a.At.Compare(b.At), a.report()-b.report()) })
	return all
}

// report is 1 for a report about a message that a relay accepted, which follows the end of the same moment.
func (s step) report() int {
	if s.Attempt == nil && len(s.Events) > 0 && s.Events[0].Details != nil {
		return 1
	}
	return 0
}

// made reports whether the step is the attempt of an event.
func (s step) made(e api.MessageEvent) bool {
	return s.Attempt != nil && e.Attempt != nil && s.Attempt.Number == e.Attempt.Number &&
		s.Attempt.Start.Equal(e.Attempt.Start)
}

// happened returns the name of an event as text.
func happened(name string) string {
	words := map[string]string{
		"messageQueued": "Accepted",
		"messageSent":   "Sent", "messageDeliveryError": "Will be retried", "messageFailed": "Failed",
		"messageCancelled":  "Cancelled",
		"messageWaited":     "Waited",
		"messageSuppressed": "Suppressed", "messageReplayed": "Sent again by hand",
		"messageDelivered": "Delivered", "messageDeferred": "Deferred on the way", "messageBounce": "Bounced",
		"messageComplaint": "Marked as spam",
		"trackOpen":        "Opened", "trackClick": "Link followed", "listUnsubscribe": "Unsubscribed",
		"listSubscribe": "Subscribed again", "messageReported": "Reported by the provider",
	}[name]
	return cmp.Or(words, name)
}

// detailsOf returns the details of an event in one line, or "".
func detailsOf(e api.MessageEvent) string {
	d := e.Details
	if d == nil {
		return ""
	}
	var words []string
	for _, w := range []string{d.BounceType, d.FeedbackType, d.Status, d.Diagnostic, d.URL, d.ListID} {
		if w != "" && (w != d.Status || !strings.Contains(d.Diagnostic, w)) {
			words = append(words, w)
		}
	}
	if d.Reason == event.Unconfirmed || d.Reason == event.Unproven {
		words = append(words, d.Reason)
	}
	if d.Bot {
		words = append(words, "by a bot ("+d.BotReason+")")
	}
	if d.Source != "" {
		words = append(words, "reported by "+d.Source)
	}
	return strings.Join(words, ", ")
}

// readers returns the opens and clicks of a message as text, or "". Bots are counted separately.
func readers(events []api.MessageEvent) string {
	opens, clicks, bots := 0, 0, 0
	links := map[string]bool{}
	for _, e := range events {
		open, click := e.Event == "trackOpen", e.Event == "trackClick"
		switch {
		case !open && !click:
		case e.Details != nil && e.Details.Bot:
			bots++
		case open:
			opens++
		default:
			clicks++
			if e.Details != nil {
				links[e.Details.URL] = true
			}
		}
	}
	var words []string
	if opens > 0 {
		words = append(words, "opened "+plural(opens, "time", "times"))
	}
	if clicks > 0 {
		words = append(words, plural(len(links), "link", "links")+" followed "+plural(clicks, "time", "times"))
	}
	if bots > 0 {
		words = append(words, plural(bots, "hit", "hits")+" by bots")
	}
	return strings.Join(words, ", ")
}

// someOf returns the first of some addresses and the number of the others.
func someOf(addresses []string) string {
	switch n := len(addresses); n {
	case 0:
		return ""
	case 1:
		return addresses[0]
	default:
		return addresses[0] + " and " + plural(n-1, "other", "others")
	}
}
