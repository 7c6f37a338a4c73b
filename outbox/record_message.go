package outbox

import (
	"encoding/json"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
)

// envelope is the part of a message that never changes: who it is from and for, and what the sender said
// about it.
type envelope struct {
	Account    string           `json:"account"`
	Source     string           `json:"source"` // the door it came in by: api or smtp
	MessageID  string           `json:"messageId"`
	From       string           `json:"from"` // return path; empty for the null sender
	To         []string         `json:"to"`
	Subject    string           `json:"subject,omitempty"`
	Key        string           `json:"key,omitempty"` // idempotency key
	Tags       []string         `json:"tags,omitempty"`
	Metadata   json.RawMessage  `json:"metadata,omitempty"`
	DeliverBy  *time.Time       `json:"deliverBy,omitempty"`
	DSN        *api.DSN         `json:"dsn,omitempty"`
	UTF8       bool             `json:"utf8,omitempty"`       // headers or addresses need SMTPUTF8
	RequireTLS bool             `json:"requireTls,omitempty"` // every relay on the way must use TLS
	EightBit   bool             `json:"eightBit,omitempty"`   // the body needs 8BITMIME
	Size       int              `json:"size"`                 // bytes of the content, uncompressed
	Template   *api.TemplateRef `json:"template,omitempty"`
	// bounces go where Postroom reads them (Options.BounceDomain)
	Returns bool `json:"returns,omitempty"`
	// recipients at the end that a replay put in the place of others
	Added int `json:"added,omitempty"`
	additions
}

// status is what the attempts so far came to. A message that was never tried has none.
type status struct {
	Recipients []recipient   `json:"recipients"`
	Log        []api.Attempt `json:"log,omitempty"`
	Last       *lastError    `json:"last,omitempty"`
	Events     []pastEvent   `json:"events,omitempty"`
}

// recipient is what became of one recipient so far, in the order of the envelope.
type recipient struct {
	Status   string `json:"status"` // queued, sent, failed
	Response string `json:"response,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
}

// What can become of a recipient.
const (
	rcptQueued    = "queued"
	rcptSent      = "sent"
	rcptFailed    = "failed"
	rcptCancelled = "cancelled"
	rcptReplaced  = "replaced" // failed, and a replay addressed others instead
)

// lastError is what the last attempt failed with.
type lastError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	SMTP    int    `json:"smtp,omitempty"`    // reply code; 0: there was no reply
	Account bool   `json:"account,omitempty"` // the account was refused, not the message
}

// newStatus is the status of a message before its first attempt.
func newStatus(e envelope) status {
	s := status{Recipients: make([]recipient, len(e.To))}
	for i := range s.Recipients {
		s.Recipients[i].Status = rcptQueued
	}
	return s
}

// having lists the recipients of a given status, as indexes into the envelope.
func (s status) having(state string) []int {
	var which []int
	for i, r := range s.Recipients {
		if r.Status == state {
			which = append(which, i)
		}
	}
	return which
}

// doubtful counts the attempts in doubt that stand in the log. One whose worker died comes to stand there
// with the attempt after it.
func (s status) doubtful() int {
	n := 0
	for _, a := range s.Log {
		if a.InDoubt {
			n++
		}
	}
	return n
}

// addresses picks recipients out of an envelope.
func (e envelope) addresses(which []int) []string {
	out := make([]string, len(which))
	for i, n := range which {
		out[i] = e.To[n]
	}
	return out
}

// about is the part that every event about this message carries, for some of its recipients.
func (e envelope) about(id string, lane api.Lane, gateway string, to []string) event.Message {
	return event.Message{
		QueueID: id, MessageID: e.MessageID, Envelope: event.Envelope{From: e.From, To: to},
		Lane: string(lane), Gateway: gateway, Metadata: e.Metadata, Tags: e.Tags,
	}
}

// outcome is where an attempt leaves its message.
type outcome string

const (
	sent outcome = "sent" // every recipient is done, and none failed

	// every recipient is done: none failed and none got it, for none may be mailed
	suppressed outcome = "suppressed"

	delayed  outcome = "delayed"  // another attempt will be made for the recipients left
	failed   outcome = "failed"   // every recipient is done, and some failed: a dead letter
	dropped  outcome = "dropped"  // failed, with dead letters switched off
	released outcome = "released" // the attempt did not take place; no attempt is spent
	deferred outcome = "deferred" // a limit is reached: the attempt will take place later; none is spent
	// the account is in trouble: it will take place when that is over; none is spent
	held outcome = "held"
)

// How a text is kept of a message that ended: packed by itself, after a prefix, or in its content, which
// stays where it is. That costs nothing now, and little room where a mail is short.
const (
	keptText    = "t"
	keptContent = "c"
	shortMail   = 8 << 10
)
