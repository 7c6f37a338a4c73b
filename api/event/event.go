package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Version of the JSON below. Readers refuse a higher one.
const Version = 1

// Type names what happened.
type Type string

// What can happen to a message. Each recipient of each message ends in exactly one of Sent, Failed,
// Cancelled and Suppressed.
const (
	MessageQueued        Type = "messageQueued"        // accepted and durable
	MessageSent          Type = "messageSent"          // the relay took it for the recipients in accepted
	MessageDeliveryError Type = "messageDeliveryError" // an attempt failed and another one will be made
	MessageFailed        Type = "messageFailed"        // no further attempt for the recipients in envelope.to
	MessageCancelled     Type = "messageCancelled"     // cancelled before it was sent
	MessageSuppressed    Type = "messageSuppressed"    // not sent, because the recipient must not be mailed
	MessageReplayed      Type = "messageReplayed"      // a dead letter was queued again
)

// What can become known about a message after a relay took it. Unlike those above, one of these may come at
// any time, in any order, and some more than once for a recipient.
const (
	MessageDelivered Type = "messageDelivered" // the recipient's server took it
	MessageDeferred  Type = "messageDeferred"  // not yet: a server on the way is still trying
	MessageBounce    Type = "messageBounce"    // it came back; bounceType says whether the address is dead
	MessageComplaint Type = "messageComplaint" // the recipient called it spam
	TrackOpen        Type = "trackOpen"        // its pixel was fetched
	TrackClick       Type = "trackClick"       // one of its links was followed
	MessageReported  Type = "messageReported"  // a provider reported something else; reason has its word
	ListUnsubscribe  Type = "listUnsubscribe"  // the recipient unsubscribed from a list or from the account
	ListSubscribe    Type = "listSubscribe"    // the recipient resubscribed
)

// What can happen to a campaign.
const (
	CampaignStarted  Type = "campaignStarted"  // a run began
	CampaignPaused   Type = "campaignPaused"   // somebody paused it
	CampaignHeld     Type = "campaignHeld"     // Postroom held it, for the given reason
	CampaignFinished Type = "campaignFinished" // its run is finished: sent, cancelled or failed
)

// What can happen to an audience.
const (
	SubscriberConfirmed Type = "subscriberConfirmed" // a pending subscription was confirmed by its link
	SubscriberLeft      Type = "subscriberLeft"      // a subscriber left a list
	ImportFinished      Type = "importFinished"      // an import of subscribers is over: done or interrupted
)

// What can happen to a digest.
const (
	DigestSent    Type = "digestSent"    // the relay took its mail
	DigestSkipped Type = "digestSkipped" // there was nothing, or nobody, to mail; reason says why
	DigestFailed  Type = "digestFailed"  // it was given up; returned says how many events wait for the next one
)

// What can happen to the system.
const (
	AccountError    Type = "accountError"    // an account's credentials, certificate or sender were refused
	WebhookDisabled Type = "webhookDisabled" // an endpoint was switched off after failing for too long
	WebhookTest     Type = "webhookTest"     // a test delivery was requested
	AlertRaised     Type = "alertRaised"     // something is wrong that an operator has to look at
	AlertResolved   Type = "alertResolved"   // the cause of an alert is over
)

// Types lists every type that an endpoint can ask for, in the order of a message's life.
func Types() []Type {
	return []Type{
		MessageQueued, MessageSent, MessageDeliveryError, MessageFailed, MessageCancelled, MessageSuppressed,
		MessageReplayed,
		MessageDelivered, MessageDeferred, MessageBounce, MessageComplaint, TrackOpen, TrackClick, ListUnsubscribe,
		ListSubscribe, MessageReported,
		CampaignStarted, CampaignPaused, CampaignHeld, CampaignFinished,
		SubscriberConfirmed, SubscriberLeft, ImportFinished,
		DigestSent, DigestSkipped, DigestFailed,
		AccountError, WebhookDisabled, WebhookTest, AlertRaised, AlertResolved,
	}
}

// Later reports whether events of this type become known after a relay took the message.
func (t Type) Later() bool {
	switch t {
	case MessageDelivered, MessageDeferred, MessageBounce, MessageComplaint, TrackOpen, TrackClick,
		ListUnsubscribe, ListSubscribe, MessageReported:
		return true
	}
	return false
}

// Event is one fact, as it is in the stream.
type Event struct {
	Version int             `json:"v"`
	ID      string          `json:"eventId"`
	Type    Type            `json:"event"`
	Account string          `json:"account,omitempty"` // empty for events of the whole instance
	Time    time.Time       `json:"date"`
	Quiet   bool            `json:"quiet,omitempty"` // for Postroom itself and the archive: no webhook gets it
	Trace   string          `json:"trace,omitempty"` // ID of its message, as package traces writes it, or empty
	Data    json.RawMessage `json:"data"`            // one of the structs of this package, by Type
}

// New makes an event from its parts. It fails only when data can't be written as JSON.
func New(id string, t Type, account string, at time.Time, data any) (Event, error) {
	raw, err := plainJSON(data)
	if err != nil {
		return Event{}, fmt.Errorf("write %s event of account %q as JSON: %w", t, account, err)
	}
	return Event{Version: Version, ID: id, Type: t, Account: account, Time: at.UTC().Truncate(time.Millisecond),
		Data: raw}, nil
}

// Line writes the event as it is in the stream. Its data, which New wrote, is copied: the encoder would
// parse and check it once more.
func (e Event) Line() (string, error) {
	data := e.Data
	e.Data = json.RawMessage("0")
	raw, err := plainJSON(e)
	if err != nil {
		return "", fmt.Errorf("write event %s: %w", e.ID, err)
	}
	return string(bytes.TrimSuffix(raw, []byte("0}"))) + string(data) + "}", nil
}

// plainJSON writes JSON without escaping < and >, so that message ids stay readable in webhooks.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// Parse reads an event of the stream.
func Parse(line []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, fmt.Errorf("read event: %w", err)
	}
	if e.Version > Version {
		return Event{}, fmt.Errorf(
			"read event %s: written by a newer Postroom (version %d, this one reads up to %d)", e.ID, e.Version,
			Version)
	}
	return e, nil
}
