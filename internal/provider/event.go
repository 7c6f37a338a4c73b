package provider

import (
	"encoding/json"
	"time"
)

// MaxRaw is the greatest size of a Raw event, in bytes of JSON.
const MaxRaw = 8 << 10

// Kind is what happened to a message, in this package's terms.
type Kind string

// The kinds of events. Accepted is only a receipt; the others change the state of a message or its recipient.
const (
	// the provider accepted the message and will try; it links the provider's id to ours
	Accepted     Kind = "accepted"
	Delivered    Kind = "delivered"    // the recipient's server accepted it
	Deferred     Kind = "deferred"     // not yet; the provider tries again
	Bounced      Kind = "bounced"      // the recipient's server refused it permanently; Bounce has the address
	Dropped      Kind = "dropped"      // the provider did not send it; see Reason
	Complained   Kind = "complained"   // the recipient marked it as spam
	Unsubscribed Kind = "unsubscribed" // the recipient rejects further mail
	Opened       Kind = "opened"       // its pixel was fetched
	Clicked      Kind = "clicked"      // a link, URL, was followed
	Other        Kind = "other"        // something else; see Word
)

// Bounce is the type of a bounce; events of other kinds have none.
type Bounce string

// The types of a bounce. If the provider does not know, it is soft.
const (
	Hard Bounce = "hard" // the address is dead
	Soft Bounce = "soft" // this message was refused: a full mailbox, a block, its size
)

// Reason is why a message was dropped or refused, or "" if the provider does not say.
type Reason string

// The reasons. For a Dropped event they are what the provider's own suppression list has about the address.
const (
	ReasonInvalid      Reason = "invalid"      // it isn't an address, or its domain takes no mail
	ReasonBounced      Reason = "bounced"      // it bounces, or did so before
	ReasonTimedOut     Reason = "timed_out"    // tried for too long
	ReasonBlocked      Reason = "blocked"      // refused because of the sender or the content
	ReasonSpam         Reason = "spam"         // the recipient complained, now or before
	ReasonUnsubscribed Reason = "unsubscribed" // the recipient unsubscribed, now or before
	ReasonOther        Reason = "other"        // something else; see Diagnostic
)

// Event is one fact about one recipient of one message. Fields without a value from the provider are empty.
type Event struct {
	Provider Name   `json:"provider"`
	Kind     Kind   `json:"kind"`
	Bounce   Bounce `json:"bounce,omitempty"` // for Bounced only
	Reason   Reason `json:"reason,omitempty"`
	Word     string `json:"reported"` // the provider's own word for it, such as "spamreport"

	// when it happened, UTC, by the provider's clock; zero if there is no time, or no sensible one
	Time time.Time `json:"time,omitzero"`

	// Recipient has its domain in lower case and its local part as the provider wrote it. An invalid address is
	// kept as written: it may be the cause of the bounce.
	Recipient string `json:"recipient,omitempty"`
	// the possible recipients, if the provider does not say which one it means
	Candidates []string `json:"candidates,omitempty"`

	// the provider's id of the event; empty where it gives none
	EventID string `json:"eventId,omitempty"`
	// the same each time the provider repeats the fact; unique per provider
	Key               string `json:"key"`
	ProviderMessageID string `json:"providerMessageId,omitempty"` // the provider's id of the message
	// another id under which the provider may have answered the submission
	ProviderAlias string `json:"providerAlias,omitempty"`
	MessageID     string `json:"messageId,omitempty"` // the header Message-ID, in angle brackets

	// the reply of the recipient's server, or else the provider's own text
	Diagnostic string `json:"diagnostic,omitempty"`
	SMTPCode   int    `json:"smtpCode,omitempty"` // three digits, beginning with 2, 4 or 5
	Enhanced   string `json:"enhanced,omitempty"` // enhanced status code (RFC 3463), such as "5.1.1"

	URL       string `json:"url,omitempty"` // for Clicked: the link
	UserAgent string `json:"userAgent,omitempty"`
	// the visitor's who opened, clicked or unsubscribed; never a mail server's
	IP  string `json:"ip,omitempty"`
	Bot bool   `json:"machine,omitempty"` // the provider says that a bot did this: a proxy or a scanner

	// what the provider wrote, keys sorted, with Request.KeepRaw. Beyond MaxRaw bytes, long texts are cut; if
	// that is not enough, it is a string: the beginning of the JSON
	Raw json.RawMessage `json:"raw,omitempty"`

	Tags []string `json:"tags,omitempty"`
	// what the sender attached; values that aren't strings are JSON
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Batch is the content of one body.
type Batch struct {
	Events  []Event
	Ignored []Ignored
	Broken  []Broken
	Confirm *Confirmation // the SNS subscription to confirm; there are no events then
}

// Ignored is an element of an unused or unknown kind.
type Ignored struct {
	Index int    // place in the body, from 0
	Name  string // a name of words.tsv: one for each kind that is known and unused, or unknown
	Word  string // the provider's word, for the log; at most 64 bytes
	Event Event  // an event of kind Other, with what could be read; it may name no message
}

// Broken is an element that could not be read.
type Broken struct {
	Index int // place in the body, from 0
	Err   error
}

// Confirmation is the request of Amazon SNS to confirm a subscription. A GET of URL confirms it.
type Confirmation struct {
	URL   string // https, a host of SNS, for the topic below
	Topic string // the ARN of the topic
}
