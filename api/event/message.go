package event

import (
	"encoding/json"
	"time"
)

// Envelope is the sender and the recipients that the relay gets (RFC 5321). The headers may name others.
type Envelope struct {
	From string   `json:"from"`
	To   []string `json:"to"`
}

// Message is the part that every event about a message carries.
type Message struct {
	QueueID   string          `json:"queueId"`
	MessageID string          `json:"messageId"`
	Envelope  Envelope        `json:"envelope"`
	Lane      string          `json:"lane,omitempty"`
	Gateway   string          `json:"gateway,omitempty"`
	Metadata  json.RawMessage `json:"metadata"`       // the sender's own object, echoed; {}: none was given
	Tags      []string        `json:"tags"`           // never nil
	List      string          `json:"list,omitempty"` // mailing list
	// IP address that the last attempt was set to connect from; empty: the system's choice
	LocalAddress string `json:"localAddress,omitempty"`
	*Campaign           // for a campaign's message
}

// CampaignChange is the data of an event about a campaign.
type CampaignChange struct {
	Campaign string          `json:"campaign"`
	Name     string          `json:"name"`
	Run      int             `json:"run"`
	State    string          `json:"state"`
	Reason   string          `json:"reason,omitempty"` // why it is held or failed
	States   json.RawMessage `json:"states"`           // its recipients by state, as the API has them
}

// Campaign is the campaign that a message is of, and whom it goes to.
type Campaign struct {
	Campaign   string `json:"campaign,omitempty"`
	Run        int    `json:"run,omitempty"`
	Subscriber string `json:"subscriber,omitempty"`
	Variant    string `json:"variant,omitempty"`
}

// Job is the position of an attempt among its message's attempts.
type Job struct {
	ID           string `json:"id"`
	AttemptsMade int    `json:"attemptsMade"` // this attempt included
	Attempts     int    `json:"attempts"`     // in all
	// null when none will be made, as in messageFailed; the outbox has false
	NextAttempt *time.Time `json:"nextAttempt"`
}

// Recipient is the state of one recipient.
type Recipient struct {
	Address  string `json:"address"`
	Status   string `json:"status"`             // queued, sent, failed, cancelled, suppressed
	Response string `json:"response,omitempty"` // the relay's last reply about this recipient
	Attempts int    `json:"attempts"`

	ProviderMessageID string `json:"providerMessageId,omitempty"` // that the provider gave the message
}

// Queued is the data of MessageQueued.
type Queued struct {
	Message
	SendAt time.Time `json:"sendAt"`
}

// Sent is the data of MessageSent. Envelope.To holds the recipients accepted in this attempt.
type Sent struct {
	Message
	Response       string   `json:"response"`
	Accepted       []string `json:"accepted"`
	NetworkRouting *string  `json:"networkRouting"` // always null: kept for readers written for EmailEngine
	InDoubt        bool     `json:"inDoubt,omitempty"`

	// that the provider gave the message, if it is the same for all in Accepted
	ProviderMessageID string `json:"providerMessageId,omitempty"`
}

// Failure is what an attempt, or the whole message, failed with.
type Failure struct {
	Error            string `json:"error"`
	ErrorCode        string `json:"errorCode"`              // EENVELOPE, EAUTH, ESOCKET…
	SMTPResponse     string `json:"smtpResponse,omitempty"` // the reply, where there was one
	SMTPResponseCode *int   `json:"smtpResponseCode"`       // null where no reply came
	SMTPCommand      string `json:"smtpCommand,omitempty"`
	Verdict          string `json:"verdict,omitempty"` // such as hard: refused permanently; see docs/delivery.md
	InDoubt          bool   `json:"inDoubt,omitempty"` // the attempt died between the final dot and the reply
}

// DeliveryError is the data of MessageDeliveryError: Job.NextAttempt is when the next attempt is due.
type DeliveryError struct {
	Message
	Failure
	NetworkRouting *string `json:"networkRouting"`
	Job            Job     `json:"job"`
}

// Failed is the data of MessageFailed. Envelope.To holds the recipients given up.
type Failed struct {
	Message
	Failure
	NetworkRouting *string     `json:"networkRouting"`
	Recipients     []Recipient `json:"recipients"`
	Job            Job         `json:"job"`
	DeadLetter     string      `json:"deadLetter,omitempty"` // its id, where the content is kept for replay
}

// Cancelled is the data of MessageCancelled and MessageSuppressed. Envelope.To holds the recipients
// concerned.
type Cancelled struct {
	Message
	// api, dashboard, account deleted; or why the recipients must not be mailed
	Reason string `json:"reason"`
	// an attempt died between the final dot and the reply: they may have the message
	InDoubt bool `json:"inDoubt,omitempty"`
}

// Replayed is the data of MessageReplayed.
type Replayed struct {
	Message
	Attempt int `json:"attempt"` // attempts made before the replay
}
