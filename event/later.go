package event

import "encoding/json"

// Later is what became known about a message after it was handed on, beside the message itself. Which
// fields there are follows from the type of the event; those that were not told are empty.
type Later struct {
	Source            string `json:"source,omitempty"`            // who told: a provider's name, bounce, track, unsubscribe
	ProviderMessageID string `json:"providerMessageId,omitempty"` // the provider's own id of the message
	Action            string `json:"action,omitempty"`            // RFC 3464 section 2.3.3: failed, delayed, delivered, relayed, expanded
	BounceType        string `json:"bounceType,omitempty"`        // hard: the address is dead; soft: this message was refused
	Status            string `json:"status,omitempty"`            // enhanced status code (RFC 3463), such as 5.1.1
	Code              int    `json:"smtpResponseCode,omitempty"`  // of the reply that is quoted
	Diagnostic        string `json:"smtpResponse,omitempty"`      // the reply of the recipient's server, or else words of who told
	MTA               string `json:"mta,omitempty"`               // the server that said so
	FeedbackType      string `json:"feedbackType,omitempty"`      // RFC 5965 section 3.1: abuse, fraud, not-spam…
	Reason            string `json:"reason,omitempty"`            // why, in one word: bounced, blocked, timed_out…
	URL               string `json:"url,omitempty"`               // the link that was followed
	RemoteAddress     string `json:"remoteAddress,omitempty"`     // of who opened, clicked or unsubscribed, as far as it is kept
	UserAgent         string `json:"userAgent,omitempty"`
	Bot               bool   `json:"bot,omitempty"`       // a program did it, not a person
	BotReason         string `json:"botReason,omitempty"` // the rule that says so
	ListID            string `json:"listId,omitempty"`    // of ListUnsubscribe and ListSubscribe; empty: all mail of the account

	Raw json.RawMessage `json:"raw,omitempty"` // what a provider told, in its own words, where that is kept
}

// Learned is the data of the events that become known later. Envelope.To holds the recipient it is about;
// all of them where nobody can tell.
type Learned struct {
	Message
	Recipient string `json:"recipient,omitempty"` // empty: not known which
	Later
}
