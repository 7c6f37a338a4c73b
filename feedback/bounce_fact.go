package feedback

import (
	"strings"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/smtpsend"
)

// ofBounces names mail that came back as the one who told.
const ofBounces = "bounce"

// entryOf is what a mail says of a recipient, as a fact for the inbox. A fact is known by its message, its recipient and what it says, so that a
// mail that comes twice, or a second one that says the same, changes nothing.
func (c claimed) entryOf(report bounce.Report, t told, now time.Time) entry {
	e := entry{Received: now, Later: outbox.Later{
		Account: c.Account, MessageID: c.id, Recipient: t.to, Index: -1, At: now,
		Told: event.Later{
			Source: ofBounces, Action: string(t.said.Action), Status: t.said.Status, Code: t.said.Code, Diagnostic: cut(t.said.Diagnostic, 500),
			MTA: t.said.RemoteMTA,
		},
	}}
	if e.Told.MTA == "" {
		e.Told.MTA = report.ReportingMTA
	}
	if report.Kind == bounce.Complained {
		c.complaint(&e, report.Feedback)
	} else {
		e.fate(t)
	}
	e.Key = shortKey(ofBounces, strings.Join([]string{c.id, string(e.Type), e.Told.Action, e.Told.FeedbackType, t.to}, "/"))
	return e
}

// complaint makes an entry one of a feedback report. Who opts out doesn't complain; and only some types are what a recipient, or a machine
// for the recipient's sake, says against the mail.
func (c claimed) complaint(e *entry, f *bounce.Feedback) {
	e.Type, e.Told.FeedbackType, e.Told.Action, e.Told.Status = event.MessageComplaint, f.Type, "", ""
	switch f.Type {
	case "abuse", "fraud", "virus":
		e.Effect = effectComplaint
	case "opt-out":
		e.Type, e.Effect, e.Told.ListID = event.ListUnsubscribe, effectUnsubscribe, c.ListID
	}
}

// fate makes an entry one of what became of the message. That who sent it, or what was in it, is not wanted says nothing about the address;
// and that somebody is dead to whom a living address forwards, or who is a member of a list, counts like a failure that may pass.
func (e *entry) fate(t told) {
	switch t.said.Action {
	case bounce.ActionDelayed:
		e.Type = event.MessageDeferred
	case bounce.ActionDelivered, bounce.ActionRelayed, bounce.ActionExpanded:
		e.Type = event.MessageDelivered
	default:
		e.Type, e.Told.BounceType = event.MessageBounce, "soft"
		switch {
		case t.said.Verdict == smtpsend.Policy || t.said.Verdict == smtpsend.Block:
		case t.said.Suppress && !t.forwarded:
			e.Told.BounceType, e.Effect = "hard", effectHard
		default:
			e.Effect = effectSoft
		}
	}
}
