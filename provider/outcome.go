package provider

// outcome is what a provider's name for an event means in this package. The zero outcome is that of an
// unknown name.
type outcome struct {
	kind    Kind
	bounce  Bounce
	reason  Reason
	ignored string // one of IgnoredNames; such an event is not used
}

// The outcomes that several providers have names for.
var (
	accepted     = outcome{kind: Accepted}
	delivered    = outcome{kind: Delivered}
	deferred     = outcome{kind: Deferred}
	hardBounce   = outcome{kind: Bounced, bounce: Hard, reason: ReasonBounced}
	softBounce   = outcome{kind: Bounced, bounce: Soft, reason: ReasonBounced}
	badAddress   = outcome{kind: Bounced, bounce: Hard, reason: ReasonInvalid}
	refused      = outcome{kind: Bounced, bounce: Soft, reason: ReasonBlocked}
	complained   = outcome{kind: Complained, reason: ReasonSpam}
	unsubscribed = outcome{kind: Unsubscribed, reason: ReasonUnsubscribed}
	opened       = outcome{kind: Opened}
	clicked      = outcome{kind: Clicked}
)

func dropped(reason Reason) outcome { return outcome{kind: Dropped, reason: reason} }

func ignored(name string) outcome { return outcome{ignored: name} }

// fact gives an event this outcome. It makes one for each of the recipients, or one event without recipients.
// Only a click keeps its URL.
func (m outcome) fact(word string, e Event, recipients ...string) (fact, error) {
	switch {
	case m.ignored != "":
		return ignore(m.ignored, word)
	case m.kind == "":
		return unknown(word)
	}
	e.Kind, e.Bounce, e.Reason = m.kind, m.bounce, m.reason
	if e.Kind != Clicked {
		e.URL = ""
	}
	return forAll(word, e, recipients)
}
