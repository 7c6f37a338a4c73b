package feedback

import (
	"cmp"
	"strings"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/smtpsend"
)

// ofBounces is the source of facts from mail that came back.
const ofBounces = "bounce"

// entryOf returns the entry of a fact about one recipient. A fact is known by its message, recipient and
// content. So an email that comes twice, or another that says the same, changes nothing.
func (c claimed) entryOf(report bounce.Report, t statement, now time.Time) entry {
	e := entry{Received: now, Proven: !c.Known, Fact: outbox.Fact{
		Account: c.Account, MessageID: c.id, Recipient: t.to, Index: -1, At: now,
		Details: event.Later{
			Source: ofBounces, Action: string(t.said.Action), Status: t.said.Status, Code: t.said.Code,
			Diagnostic: message.Clip(t.said.Diagnostic, 500),
			MTA:        t.said.RemoteMTA,
		},
	}}
	e.Details.MTA = cmp.Or(e.Details.MTA, report.ReportingMTA)
	if report.Kind == bounce.Complained {
		c.complaint(&e, report.Feedback)
	} else {
		e.fate(t)
	}
	// whoever mail is forwarded to knows its Message-ID
	elsewhere := t.forwarded && c.proof == ByMessageID && report.Kind != bounce.Complained
	e.hearsay(c.speaksFor(t.to) && !elsewhere)
	e.Key = shortKey(ofBounces, strings.Join([]string{c.id, string(e.Type), e.Details.Action,
		e.Details.FeedbackType, t.to}, "/"))
	return e
}

// complaint makes e the entry of a feedback report. An opt-out is an unsubscribe, not a complaint. Only some
// report types are statements against the mail, by the recipient or by a program on the recipient's behalf.
func (c claimed) complaint(e *entry, f *bounce.Feedback) {
	e.Type, e.Details.FeedbackType, e.Details.Action, e.Details.Status = event.MessageComplaint, f.Type, "", ""
	switch f.Type {
	case "abuse", "fraud", "virus":
		e.Effect = effectComplaint
	case "opt-out":
		e.Type, e.Effect, e.Details.ListID = event.ListUnsubscribe, effectUnsubscribe, c.ListID
	}
}

// hearsay reduces a fact to what an email alone proves. own: the mail has a token that only the recipient of
// the fact got. Otherwise each recipient of the message may have written it, and it has no effect.
func (e *entry) hearsay(own bool) {
	switch {
	case !own:
		e.Effect, e.Details.Reason = "", event.Unproven
		if e.Type == event.ListUnsubscribe { // programs that read events obey one
			e.Type, e.Details.ListID = event.MessageComplaint, ""
		}
	case e.Effect == effectHard:
		e.Effect, e.Details.Reason = effectSaidDead, event.Unconfirmed
	case e.Effect == effectComplaint:
		e.Effect, e.Details.Reason = effectSaidSpam, event.Unconfirmed
	}
	if e.Details.BounceType != "" {
		e.Details.BounceType = "soft"
	}
}

// fate makes e the entry of a delivery result. A dead address that a living one forwards to, or a dead member
// of a list, counts as a soft bounce.
func (e *entry) fate(t statement) {
	switch t.said.Action {
	case bounce.ActionDelayed:
		e.Type = event.MessageDeferred
	case bounce.ActionDelivered, bounce.ActionRelayed, bounce.ActionExpanded:
		e.Type = event.MessageDelivered
	default:
		e.Type = event.MessageBounce
		e.bounced(t.said.Verdict, t.said.Suppress && !t.forwarded)
	}
}

// bounced sets the effects of a refusal, whoever reports it. Only a dead address is a hard bounce. A refusal
// of the sender or the content says nothing about the address. No verdict means that the reason is unknown.
func (e *entry) bounced(v smtpsend.Verdict, dead bool) {
	e.Details.BounceType, e.Effect = "soft", ""
	switch {
	case dead:
		e.Details.BounceType, e.Effect = "hard", effectHard
	case v == "" || v.AboutAddress():
		e.Effect = effectSoft
	case e.Details.Reason == "" || e.Details.Reason == "bounced":
		e.Details.Reason = "blocked"
	}
}
