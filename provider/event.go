package provider

import (
	"encoding/json"
	"time"
)

// MaxRaw is how large an event of a provider is kept as it was written, in bytes of JSON.
const MaxRaw = 8 << 10

// Kind is what happened to a message, in the words of this package.
type Kind string

// What providers tell. Accepted is no more than a receipt; the others change what is known about a message or its recipient.
const (
	Accepted     Kind = "accepted"     // the provider took the message and will try; good for matching its id to ours
	Delivered    Kind = "delivered"    // the recipient's server took it
	Deferred     Kind = "deferred"     // not yet; the provider tries again by itself
	Bounced      Kind = "bounced"      // the recipient's server refused it for good; Bounce says what that means for the address
	Dropped      Kind = "dropped"      // the provider didn't send it at all; Reason says why
	Complained   Kind = "complained"   // the recipient called it spam
	Unsubscribed Kind = "unsubscribed" // the recipient wants no more of it
	Opened       Kind = "opened"       // its pixel was fetched
	Clicked      Kind = "clicked"      // one of its links was followed; URL says which
)

// Kinds lists every kind, in the order of a message's life.
func Kinds() []Kind {
	return []Kind{Accepted, Delivered, Deferred, Bounced, Dropped, Complained, Unsubscribed, Opened, Clicked}
}

// Bounce tells the two sorts of a bounce apart; events of other kinds have none.
type Bounce string

// The two sorts of a bounce. A provider that doesn't know says soft.
const (
	Hard Bounce = "hard" // the address is dead
	Soft Bounce = "soft" // this message was refused: a full mailbox, a block, its size
)

// Reason is why a message was dropped or refused, as far as the provider tells; empty when it doesn't.
type Reason string

// The reasons. Those of a Dropped event tell what the provider's own suppression list knows about the address.
const (
	ReasonInvalid      Reason = "invalid"      // it is no address, or its domain takes no mail
	ReasonBounced      Reason = "bounced"      // it bounces, or did so before
	ReasonTimedOut     Reason = "timed_out"    // tried for too long
	ReasonBlocked      Reason = "blocked"      // refused for who sent it, or what was in it
	ReasonSpam         Reason = "spam"         // the recipient complained, now or before
	ReasonUnsubscribed Reason = "unsubscribed" // the recipient unsubscribed, now or before
	ReasonOther        Reason = "other"        // something else; Diagnostic may tell
)

// Event is one fact about one recipient of one message. Fields that the provider didn't tell are empty.
type Event struct {
	Provider Name   `json:"provider"`
	Kind     Kind   `json:"kind"`
	Bounce   Bounce `json:"bounce,omitempty"` // for Bounced only
	Reason   Reason `json:"reason,omitempty"`
	Told     string `json:"told"` // the provider's own word for it, such as "spamreport"

	Time time.Time `json:"time,omitzero"` // when it happened, UTC, by the provider's clock; zero: not told, or no sensible time

	// Recipient has its domain in lower case and its local part as the provider wrote it. Something that is no address is kept as it was
	// written, for a provider may bounce just because of that.
	Recipient  string   `json:"recipient,omitempty"`
	Candidates []string `json:"candidates,omitempty"` // the recipients it may be about, when it is one of several and not said which

	EventID           string `json:"eventId,omitempty"`           // the provider's id of the event; empty where it gives none
	Key               string `json:"key"`                         // the same each time the provider repeats the fact; unique per provider
	ProviderMessageID string `json:"providerMessageId,omitempty"` // the provider's id of the message
	ProviderAlias     string `json:"providerAlias,omitempty"`     // another id under which the provider may have answered the submission
	MessageID         string `json:"messageId,omitempty"`         // the header Message-ID, in angle brackets

	Diagnostic string `json:"diagnostic,omitempty"` // the reply of the recipient's server, or else the provider's own words
	SMTPCode   int    `json:"smtpCode,omitempty"`   // three digits, beginning with 2, 4 or 5
	Enhanced   string `json:"enhanced,omitempty"`   // enhanced status code (RFC 3463), such as "5.1.1"

	URL       string `json:"url,omitempty"` // for Clicked: the link
	UserAgent string `json:"userAgent,omitempty"`
	IP        string `json:"ip,omitempty"`      // of who opened, clicked or unsubscribed; never of a mail server
	Machine   bool   `json:"machine,omitempty"` // the provider says that no person did this: a proxy or a scanner

	Raw json.RawMessage `json:"raw,omitempty"` // what the provider wrote, keys sorted, with Request.KeepRaw; none of more than MaxRaw bytes

	Tags     []string          `json:"tags,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"` // what the sender attached; values that aren't strings are JSON
}

// Batch is what one body said.
type Batch struct {
	Events  []Event
	Ignored []Ignored
	Broken  []Broken
	Confirm *Confirmation // set for an SNS subscription that asks to be confirmed; there are no events then
}

// Ignored is an element that was understood and isn't used, or whose kind is unknown.
type Ignored struct {
	Index int    // place in the body, from 0
	Name  string // one of IgnoredNames: fit for a label of a metric
	Told  string // the provider's word, for the log; at most 64 bytes
}

// IgnoredNames lists the names under which elements are ignored: "unknown" for a kind of event that this package has never heard of, and
// one for each sort of things that it knows and has no use for.
func IgnoredNames() []string {
	return []string{
		"ab_test_event", "account", "address_change", "autoresponded", "contact", "inbound", "ingest_event", "list", "not_spam", "ping", "received",
		"relay_event", "resubscribed", "scheduled", "sms", "stored", "subaccount_event", "topic_validated", "typofix", "unknown",
		"unsubscribe_confirmation",
	}
}

// Broken is an element that couldn't be read.
type Broken struct {
	Index int // place in the body, from 0
	Err   error
}

// Confirmation is the request of Amazon SNS to confirm that its messages are wanted here. A GET of URL confirms.
type Confirmation struct {
	URL   string // https, a host of SNS, for the topic below
	Topic string // the ARN of the topic
}
