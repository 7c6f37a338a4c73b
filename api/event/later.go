package event

import "encoding/json"

// Later is the data of a fact that became known after a relay took the message. The type of the event decides
// which fields are used; fields without a value from the source are empty.
type Later struct {
	// where the fact comes from: a provider's name, bounce, track, unsubscribe
	Source            string `json:"source,omitempty"`
	ProviderMessageID string `json:"providerMessageId,omitempty"` // the provider's own id of the message
	// RFC 3464 section 2.3.3: failed, delayed, delivered, relayed, expanded
	Action string `json:"action,omitempty"`
	// hard: the address is dead; soft: this message was refused
	BounceType string `json:"bounceType,omitempty"`
	// enhanced status code (RFC 3463), such as 5.1.1
	Status string `json:"status,omitempty"`
	Code   int    `json:"smtpResponseCode,omitempty"` // code of the quoted reply
	// the reply of the recipient's server, or else the source's text
	Diagnostic string `json:"smtpResponse,omitempty"`
	MTA        string `json:"mta,omitempty"` // the server that reported it
	// RFC 5965 section 3.1: abuse, fraud, not-spam…
	FeedbackType string `json:"feedbackType,omitempty"`
	// why, in one word: bounced, blocked, timed_out…, or Unconfirmed or Unproven
	Reason string `json:"reason,omitempty"`
	URL    string `json:"url,omitempty"` // the link that was followed
	// address of the person who opened, clicked or unsubscribed, as far as it is stored
	RemoteAddress string `json:"remoteAddress,omitempty"`
	UserAgent     string `json:"userAgent,omitempty"`
	Bot           bool   `json:"bot,omitempty"`       // a program did it, not a person
	BotReason     string `json:"botReason,omitempty"` // the rule that says so
	// of ListUnsubscribe and ListSubscribe; empty: all mail of the account
	ListID string `json:"listId,omitempty"`

	Raw json.RawMessage `json:"raw,omitempty"` // the provider's own JSON, if it is kept
}

// Reasons of facts that only a mail tells, which anybody could have written who had the message.
const (
	Unconfirmed = "unconfirmed" // the mail has a token that only this recipient got. A second one confirms it
	Unproven    = "unproven"    // other recipients could have written the mail too. It has no effect
)

// Learned is the data of the events that become known later. Envelope.To holds the recipient it is about, or
// all recipients if that is not known.
type Learned struct {
	Message
	Recipient string `json:"recipient,omitempty"` // empty: not known
	Later
}
