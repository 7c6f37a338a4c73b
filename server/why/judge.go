package why

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
)

// judge puts the findings in order, and makes the sentence of the first. Nothing is read.
func (q *question) judge() {
	a := &q.answer
	fates := q.fates()
	stops := q.stops()
	first := q.nothing(stops)
	if len(fates) > 0 {
		first, fates = q.foremost(fates[0], stops), fates[1:]
	}
	for _, f := range first {
		a.Findings = append(a.Findings, f.WhyFinding)
	}
	for _, s := range stops {
		if !slices.ContainsFunc(a.Findings, func(f api.WhyFinding) bool { return f.Text == s.Text }) {
			a.Findings = append(a.Findings, s)
		}
	}
	for _, f := range fates {
		a.Findings = append(a.Findings, f.WhyFinding)
		if told := q.toldOf(f.QueueID); told != nil {
			a.Findings = append(a.Findings, *told)
		}
	}
	a.Sentence, a.Arrived = a.Findings[0].Text, first[0].arrived
}

// fates returns the fate of each message, and of campaign mail that is not in the email log, newest first.
func (q *question) fates() (all []fate) {
	seen := map[string]bool{}
	for _, m := range q.answer.Messages {
		seen[m.QueueID] = true
		all = append(all, q.fateOf(m))
	}
	for _, c := range q.Campaigns {
		if !seen[c.QueueID] && q.means(c.QueueID, c.MessageID) {
			all = append(all, q.campaignFate(c))
		}
	}
	slices.SortStableFunc(all, func(a, b fate) int { return cmp.Compare(b.QueueID, a.QueueID) })
	return all
}

// foremost returns the findings about the newest message. Anything that has stopped mail since it went out
// precedes them. So does a failed webhook, if nothing more is known than that the relay took it.
func (q *question) foremost(newest fate, stops []api.WhyFinding) []fate {
	found := []fate{newest}
	if told := q.toldOf(newest.QueueID); told != nil {
		one := fate{*told, newest.arrived}
		if newest.Kind == "sent" && told.Kind == "webhookLost" {
			return []fate{one, newest}
		}
		found = append(found, one)
	}
	if q.named != "" || !slices.Contains([]string{"sent", "delivered", "opened"}, newest.Kind) {
		return found
	}
	since := q.created(newest)
	var later []fate
	for _, s := range stops {
		switch s.Kind {
		case "suppressed", "unsubscribed":
			if !since.IsZero() && s.Time != nil && !s.Time.Before(since.Truncate(time.Second)) { // it is in seconds
				later = append(later, fate{s, api.ArrivedNo})
			}
		}
	}
	return append(later, found...)
}

// created is when the message of a fate was accepted; zero if not known.
func (q *question) created(f fate) time.Time {
	for _, m := range q.answer.Messages {
		if m.QueueID == f.QueueID {
			return m.Created
		}
	}
	return time.Time{}
}

func (q *question) toldOf(id string) *api.WhyFinding {
	for _, m := range q.answer.Messages {
		if m.QueueID == id {
			return q.told(m)
		}
	}
	return nil
}

// nothing are the findings where there is no message: why none was made comes first.
func (q *question) nothing(stops []api.WhyFinding) []fate {
	var found []fate
	for _, s := range stops {
		switch s.Kind {
		case "erased", "unsubscribed", "unconfirmed", "digestFailed", "digestOff":
			found = append(found, fate{s, api.ArrivedNo})
		case "digestWaiting":
			found = append(found, fate{s, api.ArrivedNotYet})
		}
	}
	last := fate{arrived: api.ArrivedNo}
	switch kept := keptFor(q.keeps); {
	case q.blind:
		last.WhyFinding = finding("unasked", nil,
			"It is unknown whether anything was submitted for %s, because the email log is "+
				"unavailable.", q.Address())
		last.arrived = api.ArrivedUnknown
		return []fate{last}
	case q.others:
		last.WhyFinding = finding("notTo", nil, "The message %s went to others, not to "+
			"%s.", q.named, q.Address())
		last.QueueID = q.named
		last.Do = append(last.Do, q.step("Show the message", "/messages/"+escaped(q.named), "log show", q.named))
		return []fate{last}
	case q.named != "":
		last.WhyFinding = finding("neverSubmitted", nil,
			"Postroom has no message %s to %s. It was never submitted here, or is no longer in the email "+
				"log%s.",
			clip(q.named, 80), q.Address(), kept)
		found = slices.DeleteFunc(found, func(f fate) bool { return f.Kind != "erased" }) // it erased the message
		return append(found, last)
	default:
		last.WhyFinding = finding("neverSubmitted", nil,
			"Postroom has no message to %s%s. Check the application.", q.Address(), kept)
	}
	last.Do = append(last.Do, q.step("Search for it", "/search?q="+query("to:"+q.Address()), "search",
		"to:"+q.Address()))
	return append(found, last)
}

// keptFor says how long the email log keeps messages; "" if that is not known.
func keptFor(d time.Duration) string {
	if d < 24*time.Hour {
		return ""
	}
	return fmt.Sprintf(" (the email log keeps messages for %s)", plural(int(d/(24*time.Hour)), "day"))
}
