package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/smtpsend"
)

// envelope is the part of a message that no attempt changes.
type envelope struct {
	Account    string           `json:"account"`
	Source     string           `json:"source"` // SourceAPI or SourceSMTP
	MessageID  string           `json:"messageId"`
	From       string           `json:"from"` // return path; empty for the null sender
	To         []string         `json:"to"`
	Subject    string           `json:"subject,omitempty"`
	Key        string           `json:"key,omitempty"` // idempotency key
	Tags       []string         `json:"tags,omitempty"`
	Priority   api.Priority     `json:"priority,omitempty"` // high or low; empty for normal
	Metadata   json.RawMessage  `json:"metadata,omitempty"`
	DeliverBy  *time.Time       `json:"deliverBy,omitempty"`
	DSN        *api.DSN         `json:"dsn,omitempty"`
	UTF8       bool             `json:"utf8,omitempty"`       // headers or addresses need SMTPUTF8
	RequireTLS bool             `json:"requireTls,omitempty"` // every relay on the way must use TLS
	EightBit   bool             `json:"eightBit,omitempty"`   // the body needs 8BITMIME
	Size       int              `json:"size"`                 // bytes of the content, uncompressed
	Template   *api.TemplateRef `json:"template,omitempty"`
	// its return path is in Options.BounceDomain
	Returns bool `json:"returns,omitempty"`
	// number of recipients at the end that a replay added
	Added int `json:"added,omitempty"`
	// submitted whole: its header and body are not changed
	Raw bool `json:"raw,omitempty"`
	// submitted with a token that is bound to the account
	Bound bool `json:"bound,omitempty"`
	// for a bound one: the authors and senders in its header, other than From
	Named []string `json:"named,omitempty"`
	// for campaign mail, otherwise nil
	Campaign *CampaignMail `json:"campaign,omitempty"`
	// carrier of its trace (package traces); empty if it has none
	Trace string `json:"trace,omitempty"`
	gateways.Path
	additions

	preview bool // it is shown, not sent: its links prove nothing. Not stored
}

// status is the result of the attempts so far. A message without an attempt has none.
type status struct {
	Recipients []recipient   `json:"recipients"`
	Log        []api.Attempt `json:"log,omitempty"`
	Last       *lastError    `json:"last,omitempty"` // the last attempt's; nil if it succeeded
	Lost       *lastError    `json:"lost,omitempty"` // for the recipient that was given up last
	Events     []pastEvent   `json:"events,omitempty"`
	Doubt      *remembered   `json:"doubt,omitempty"` // an open one that its provider remembers
	Ready      []span        `json:"ready,omitempty"` // when it was due and no attempt had begun; see begins
}

// remembered is a doubt that a repeat of the same request settles: the provider behind the gateway remembers
// its key until a time.
type remembered struct {
	Gateway  string    `json:"gateway"`
	Until    time.Time `json:"until"`
	Answered int       `json:"answered"` // attempts, before the one in doubt: a part of its key
}

// only returns the gateway that a message must go to because it remembers a request in doubt, or "" for any.
func (s status) only(now time.Time) string {
	if s.Doubt == nil || now.After(s.Doubt.Until) {
		return ""
	}
	return s.Doubt.Gateway
}

// recipient is the state of one recipient, in the order of the envelope.
type recipient struct {
	Status   string `json:"status"` // rcptQueued…
	Response string `json:"response,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	ID       string `json:"id,omitempty"` // the provider's
}

// The statuses of a recipient; see also rcptSuppressed.
const (
	rcptQueued    = "queued"
	rcptSent      = "sent"
	rcptFailed    = "failed"
	rcptCancelled = "cancelled"
	rcptReplaced  = "replaced" // failed, and a replay named others instead
)

// lastError is the error of the last attempt.
type lastError struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	SMTP    int    `json:"smtp,omitempty"`    // reply code; 0 if there was no reply
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

// having returns the recipients with a status, as indexes into the envelope.
func (s status) having(state string) []int {
	var which []int
	for i, r := range s.Recipients {
		if r.Status == state {
			which = append(which, i)
		}
	}
	return which
}

// fault returns the error to show for a message in a state, or nil. For a failed message it is a lost
// recipient's, even if the last attempt succeeded for the others; otherwise the last attempt's.
func (s status) fault(state string) *lastError {
	if state == stateFailed {
		return cmp.Or(s.Lost, s.Last)
	}
	return cmp.Or(s.Last, s.Lost)
}

// doubtful counts the attempts in doubt in the log. An attempt whose worker died is added to the log by the
// next attempt.
func (s status) doubtful() int {
	n := 0
	for _, a := range s.Log {
		if a.InDoubt {
			n++
		}
	}
	return n
}

// addresses returns the addresses of recipients.
func (e envelope) addresses(which []int) []string {
	out := make([]string, len(which))
	for i, n := range which {
		out[i] = e.To[n]
	}
	return out
}

// noMetadata is the metadata in events about a message without any.
var noMetadata = json.RawMessage("{}")

// about is the part that every event of this message has, for some of its recipients.
func (e envelope) about(id string, lane api.Lane, gateway string, to []string) event.Message {
	metadata := e.Metadata
	if len(metadata) == 0 {
		metadata = noMetadata
	}
	return event.Message{
		QueueID: id, MessageID: e.MessageID, Envelope: event.Envelope{From: e.From, To: to},
		Lane: string(lane), Gateway: gateway, Metadata: metadata, Tags: append([]string{}, e.Tags...),
		List: e.ListID, Campaign: e.Campaign.of(),
	}
}

// outcome is the outcome of an attempt, as finish.lua takes it.
type outcome string

const (
	sent outcome = "sent" // every recipient is done, and none failed

	// every recipient is done: none failed, none received it, and at least one is suppressed
	suppressed outcome = "suppressed"

	delayed  outcome = "delayed"  // another attempt will be made for the recipients left
	failed   outcome = "failed"   // every recipient is done, and some failed: a dead letter
	dropped  outcome = "dropped"  // failed, with dead letters switched off
	released outcome = "released" // the attempt did not take place; no attempt is spent
	deferred outcome = "deferred" // a limit is reached: the attempt will take place later; none is spent
	// the account is held: the attempt takes place once it works again; none is spent
	held outcome = "held"
)

// How the text of an ended message is kept: packed, after keptText; or keptContent, if the content stays. The
// content of a short mail (shortMail bytes at most) stays, because that costs no work and little memory.
const (
	keptText    = "t"
	keptContent = "c"
	shortMail   = 8 << 10
)

// CampaignMail says whose mail a message of a campaign is, and who hears of it.
type CampaignMail struct {
	event.Campaign
	Events  string `json:"events,omitempty"`  // which events leave Postroom: EventsNone, EventsEnds, EventsAll
	KeepLog bool   `json:"keepLog,omitempty"` // it enters the email log and the search index
}

// Turn is a campaign's answer, directly before an attempt, about a message that was enqueued for it. The zero
// value means that the message goes as it is stored. See Mailing.Turn.
type Turn struct {
	Until  time.Time // it waits until then; zero if it does not
	Reason string    // why it waits, or why it must not be sent any more
	Over   bool      // it must not be sent any more

	envelope envelope // as the campaign has it now, like the gateway
	gateway  string
	write    writer // nil if it goes as it is stored
}

// writer writes a message as its mailing says, of a date and as an account that may have changed since, and
// completes its envelope. It also returns its text. It returns Internal only if the message is not at fault.
type writer func(ctx context.Context, account accounts.Sender, e *envelope, date time.Time) (smtpsend.Body,
	string, error)

// The events about campaign mail that go to webhooks.
const (
	EventsNone = "none"
	EventsEnds = "ends" // failures, bounces, complaints, and that somebody left
	EventsAll  = "all"
)

// ends are the events of EventsEnds.
var ends = []event.Type{event.MessageFailed, event.MessageBounce, event.MessageComplaint,
	event.ListUnsubscribe, event.ListSubscribe}

// Quiet reports whether events of a type stay within Postroom. For mail of no campaign (nil) it returns
// false.
func (c *CampaignMail) Quiet(kind event.Type) bool {
	switch {
	case c == nil || c.Events == EventsAll:
		return false
	case c.Events == EventsNone:
		return true
	}
	return !slices.Contains(ends, kind)
}

// unlogged reports whether a message enters no log.
func (c *CampaignMail) unlogged() bool { return c != nil && !c.KeepLog }

// of returns the campaign that events about a message name, or nil.
func (c *CampaignMail) of() *event.Campaign {
	if c == nil {
		return nil
	}
	return &c.Campaign
}
