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
// Cancelled and Suppressed. docs/webhooks.md lists the comments of this file: see docs_test.go.
const (
	MessageQueued        Type = "messageQueued"        // the message is accepted and stored
	MessageSent          Type = "messageSent"          // the relay accepted the message
	MessageDeliveryError Type = "messageDeliveryError" // an attempt failed; Postroom will retry
	MessageFailed        Type = "messageFailed"        // Postroom gave up on these recipients
	MessageCancelled     Type = "messageCancelled"     // the message was cancelled before it was sent
	MessageSuppressed    Type = "messageSuppressed"    // Postroom skipped suppressed recipients
	MessageReplayed      Type = "messageReplayed"      // somebody replayed a dead letter
)

// What can become known about a message after the relay accepted it. Unlike the events above, these may come
// at any time, in any order, and more than once for a recipient.
const (
	MessageDelivered Type = "messageDelivered" // the recipient's server accepted the message
	MessageDeferred  Type = "messageDeferred"  // a server after the relay is still trying to deliver it
	MessageBounce    Type = "messageBounce"    // the message bounced; `bounceType` is `hard` or `soft`
	MessageComplaint Type = "messageComplaint" // the recipient marked the message as spam
	TrackOpen        Type = "trackOpen"        // the tracking pixel was loaded
	TrackClick       Type = "trackClick"       // a tracked link was followed
	MessageReported  Type = "messageReported"  // a provider reported something else; see `reason`
	ListUnsubscribe  Type = "listUnsubscribe"  // the recipient unsubscribed from a list or from all of them
	ListSubscribe    Type = "listSubscribe"    // the recipient resubscribed
)

// What can happen to a campaign.
const (
	CampaignStarted  Type = "campaignStarted"  // a run of a campaign started
	CampaignPaused   Type = "campaignPaused"   // somebody paused a campaign
	CampaignHeld     Type = "campaignHeld"     // Postroom stopped a campaign; `reason` says why
	CampaignFinished Type = "campaignFinished" // a run finished; `state` is `sent`, `cancelled` or `failed`
)

// What can happen to an audience.
const (
	SubscriberConfirmed Type = "subscriberConfirmed" // a subscriber confirmed a pending subscription
	SubscriberLeft      Type = "subscriberLeft"      // a subscriber left a list
	ImportFinished      Type = "importFinished"      // an import of subscribers finished or was interrupted
)

// What can happen to a digest.
const (
	DigestSent    Type = "digestSent"    // the relay accepted a digest
	DigestSkipped Type = "digestSkipped" // a digest was not sent; `reason` says why
	DigestFailed  Type = "digestFailed"  // Postroom gave up on a digest; `reason` says why
)

// What can happen to the whole instance.
const (
	AccountError    Type = "accountError"    // the relay refused an account's login or sender
	WebhookDisabled Type = "webhookDisabled" // Postroom disabled a webhook endpoint
	WebhookTest     Type = "webhookTest"     // somebody requested a test delivery
	AlertRaised     Type = "alertRaised"     // an alert started
	AlertResolved   Type = "alertResolved"   // an alert ended
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
