package api

import (
	"cmp"
	"encoding/json"
	"time"
)

// MessageStatus is the status of a message in the email log.
type MessageStatus string

// The statuses of the email log.
const (
	StatusQueued     MessageStatus = "queued"     // waiting, delayed or paused
	StatusSending    MessageStatus = "sending"    // an attempt is being made
	StatusSent       MessageStatus = "sent"       // each recipient's relay accepted it
	StatusFailed     MessageStatus = "failed"     // failed permanently; its content is no longer stored
	StatusCancelled  MessageStatus = "cancelled"  // cancelled before sending
	StatusSuppressed MessageStatus = "suppressed" // not sent: all recipients are suppressed
	StatusDead       MessageStatus = "dead"       // failed permanently; a dead letter that can be replayed
)

// The outcomes: what became known of a message after a relay accepted it. They select messages of the log as
// the statuses do. A message has the last of these that was reported for one of its recipients. Bots don't
// count.
const (
	OutcomeDelivered    MessageStatus = "delivered"
	OutcomeOpened       MessageStatus = "opened"
	OutcomeClicked      MessageStatus = "clicked"
	OutcomeUnsubscribed MessageStatus = "unsubscribed"
	OutcomeBounced      MessageStatus = "bounced"
	OutcomeComplained   MessageStatus = "complained"
)

// IsOutcome reports whether a status is one of the outcomes.
func (s MessageStatus) IsOutcome() bool {
	switch s {
	case OutcomeDelivered, OutcomeOpened, OutcomeClicked, OutcomeUnsubscribed, OutcomeBounced, OutcomeComplained:
		return true
	}
	return false
}

// IsBad reports whether a status says that somebody did not get a message, or did not want it.
func (s MessageStatus) IsBad() bool {
	switch s {
	case StatusFailed, StatusDead, OutcomeBounced, OutcomeComplained:
		return true
	}
	return false
}

// Outcome is what became known of a message after a relay accepted it.
type Outcome struct {
	Status     MessageStatus `json:"status" enum:"delivered,opened,clicked,unsubscribed,bounced,complained"`
	Date       time.Time     `json:"date"`
	Recipients []string      `json:"recipients" doc:"Recipients that the event is about"`
	Details    EventDetails  `json:"details"`

	Explanation *Explanation `json:"explanation,omitempty" doc:"For a bounce: what the reply means and what to do"`
}

// Stands returns the outcome of a message, or else its status.
func (m LoggedMessage) Stands() MessageStatus {
	if m.Outcome != nil {
		return m.Outcome.Status
	}
	return m.Status
}

// String returns the text of a report: the reply of the recipient's server, or the reason as one word.
func (o Outcome) String() string {
	return cmp.Or(o.Details.Diagnostic, o.Details.Reason, o.Details.Status)
}

// LoggedMessage is a message of the email log, queued or ended.
type LoggedMessage struct {
	QueueID        string            `json:"queueId"`
	Account        string            `json:"account"`
	Source         string            `json:"source" enum:"api,smtp" doc:"How the message was submitted"`
	MessageID      string            `json:"messageId"`
	Envelope       Envelope          `json:"envelope"`
	Subject        string            `json:"subject"`
	Status         MessageStatus     `json:"status" enum:"queued,sending,sent,failed,cancelled,suppressed,dead"`
	Outcome        *Outcome          `json:"outcome,omitempty" doc:"Most significant event reported after a relay accepted the message, in this order: delivered, opened, clicked, unsubscribed, bounced, complained"`
	Created        time.Time         `json:"created"`
	Scheduled      time.Time         `json:"scheduled" doc:"Requested time of the first attempt"`
	Ended          *time.Time        `json:"ended,omitempty" doc:"When the result for the last recipient was known, or when the message became a dead letter. Absent until then"`
	ContentUntil   *time.Time        `json:"contentUntil,omitempty" doc:"How long Postroom keeps the content of a sent message (outbox.keepContent). Only for a single message. Absent while the message is in the outbox, or if the content isn't kept"`
	NextAttempt    TimeOrFalse       `json:"nextAttempt" doc:"Time of the next attempt. false if there won't be one"`
	AttemptsMade   int               `json:"attemptsMade"`
	Attempts       int               `json:"attempts"`
	Response       string            `json:"response,omitempty" doc:"The relay's last reply to a sent message"`
	Error          *DeliveryFault    `json:"error,omitempty" doc:"Error of the last attempt"`
	Reason         string            `json:"reason,omitempty" doc:"Why the message waits or why it was cancelled"`
	Recipients     []RecipientStatus `json:"recipients"`
	Gateway        *string           `json:"gateway"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty"`
	Lane           Lane              `json:"lane" enum:"transactional,bulk"`
	Priority       Priority          `json:"priority,omitempty" enum:"high,low" doc:"Priority. Absent if normal"`
	TraceID        string            `json:"traceId,omitempty" doc:"ID of its OpenTelemetry trace. Absent without a trace"`
	Tags           []string          `json:"tags,omitempty"`
	Metadata       json.RawMessage   `json:"metadata,omitempty"`
	InDoubt        int               `json:"inDoubt,omitempty" doc:"Attempts that ended between the end of the message and the relay's reply"`
	DeliverBy      *time.Time        `json:"deliverBy,omitempty"`
	Template       *TemplateRef      `json:"template,omitempty" doc:"Stored template that it was made from"`
	Size           int               `json:"size" doc:"Size of the message (RFC 5322) in bytes. 0 for a message that is filled in when it is sent, until then"`
	Log            []Attempt         `json:"log,omitempty" doc:"All attempts. Only for a single message"`
}

// LogPage is a page of the email log, newest message first.
type LogPage struct {
	Total    int             `json:"total" doc:"Number of matching messages. A filter by tag or search text reads at most 100,000 messages per request, newest first. total then counts the matches among them, and cursor continues"`
	Page     int             `json:"page"`
	Pages    int             `json:"pages"`
	Cursor   string          `json:"cursor,omitempty" doc:"Cursor for the next rows. Absent on the last page"`
	Messages []LoggedMessage `json:"messages"`
}

func (p LogPage) rows() ([]LoggedMessage, string, int) { return p.Messages, p.Cursor, 0 }

// LogQuery selects messages of the email log. The zero query selects all.
type LogQuery struct {
	Page          int           `query:"page" minimum:"0" doc:"Page number, starting at 0"`
	PageSize      int           `query:"pageSize" minimum:"1" maximum:"1000" doc:"Rows per page. Defaults to 20"`
	Status        MessageStatus `query:"status" enum:"queued,sending,sent,failed,cancelled,suppressed,dead,delivered,opened,clicked,unsubscribed,bounced,complained" doc:"Filter by status or outcome. failed includes dead letters, and dead selects only these"`
	Account       string        `query:"account" maxLength:"256" doc:"Filter by account"`
	Lane          Lane          `query:"lane" enum:"transactional,bulk" doc:"Filter by stream"`
	Tag           string        `query:"tag" maxLength:"256" doc:"Filter by tag"`
	Search        string        `query:"search" maxLength:"1024" doc:"Filter by part of an address or of the subject (case-insensitive), or by Message-ID or idempotency key"`
	CreatedAfter  time.Time     `query:"createdAfter" doc:"Only messages accepted at this time or later"`
	CreatedBefore time.Time     `query:"createdBefore" doc:"Only messages accepted before this time"`
	Cursor        string        `query:"cursor" maxLength:"1024" doc:"Cursor from an earlier response, to continue after it. Overrides page"`
}

// MessageEvent is an event of a message, as in its webhook.
type MessageEvent struct {
	EventID    string    `json:"eventId"`
	Event      string    `json:"event" doc:"Event type, such as messageQueued or messageSent"`
	Date       time.Time `json:"date"`
	Recipients []string  `json:"recipients" doc:"Recipients that the event is about"`
	Attempt    *Attempt  `json:"attempt,omitempty" doc:"The attempt that caused it"`
	Response   string    `json:"response,omitempty" doc:"For messageSent: the relay's reply"`
	Reason     string    `json:"reason,omitempty" doc:"For messageCancelled, messageSuppressed and messageWaited: the reason"`

	// for messageWaited, which only this list has
	Until *time.Time `json:"until,omitempty" doc:"For messageWaited: the end of a wait for a limit, a connection, the account or a pause. Absent while the message still waits"`

	Details *EventDetails `json:"details,omitempty" doc:"Details of an event after a relay accepted the message, such as messageDelivered, messageBounce or trackOpen"`
}

// IDs returns the ids of the events.
func (e MessageEvents) IDs() []string {
	ids := make([]string, len(e.Events))
	for i, one := range e.Events {
		ids[i] = one.EventID
	}
	return ids
}

// EventDetails are reports about a message that a relay accepted. The event type decides which fields are
// present.
type EventDetails struct {
	Source            string `json:"source,omitempty" doc:"Source: a provider's name, bounce, track or unsubscribe"`
	ProviderMessageID string `json:"providerMessageId,omitempty" doc:"The provider's ID of the message"`
	Action            string `json:"action,omitempty" doc:"Action (RFC 3464): failed, delayed, delivered, relayed or expanded"`
	BounceType        string `json:"bounceType,omitempty" doc:"Type of bounce. hard means that the address is invalid; soft means that the server refused only this message"`
	Status            string `json:"status,omitempty" doc:"Enhanced status code (RFC 3463)"`
	Code              int    `json:"smtpResponseCode,omitempty" doc:"SMTP code of the quoted reply"`
	Diagnostic        string `json:"smtpResponse,omitempty" doc:"Reply of the recipient's server, or text from the source"`
	MTA               string `json:"mta,omitempty" doc:"Server that sent the reply"`
	FeedbackType      string `json:"feedbackType,omitempty" doc:"Type of a complaint (RFC 5965), such as abuse, fraud or not-spam"`
	Reason            string `json:"reason,omitempty" doc:"Reason, as one word"`
	URL               string `json:"url,omitempty" doc:"URL of the clicked link"`
	RemoteAddress     string `json:"remoteAddress,omitempty" doc:"Address of the visitor who opened, clicked or unsubscribed, shortened as the settings require"`
	UserAgent         string `json:"userAgent,omitempty"`
	Bot               bool   `json:"bot,omitempty" doc:"Whether a bot did it instead of a person"`
	BotReason         string `json:"botReason,omitempty" doc:"Rule that identified the bot"`
	ListID            string `json:"listId,omitempty" doc:"The event's list. Absent for all of the account's messages"`

	Raw json.RawMessage `json:"raw,omitempty" doc:"The provider's original event. Only with the setting feedback.keepRaw"`
}

// MessageEvents is the events of one message, oldest first.
type MessageEvents struct {
	QueueID string         `json:"queueId"`
	Events  []MessageEvent `json:"events"`
}

// RatesQuery selects counters. The zero query sums the last 30 days.
type RatesQuery struct {
	Account string    `query:"account" maxLength:"256" doc:"Filter by account. Defaults to the token's account, or to all"`
	From    time.Time `query:"from" doc:"Start of the period. Defaults to 30 days before its end. Without hourly rows, tags, lists and domains are counted by whole days (UTC), everything else by whole hours" help:"Start of the period (default: 30 days before its end)"`
	To      time.Time `query:"to" doc:"End of the period. Defaults to now" help:"End of the period (default: now)"`
	By      string    `query:"by" enum:"gateway,localAddress,lane,list,tag,domain" doc:"Group rows by this property. domain is the recipient's domain"`
	Name    string    `query:"name" maxLength:"256" doc:"Name of a single gateway, tag or other group"`
	Step    string    `query:"step" enum:"hour,day" doc:"Return a row for each hour or day"`
}

// Rates counts the results of messages.
type Rates struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Rates []Rate    `json:"rates" doc:"Rows sorted by time, then by sent. Rows without any events are left out"`
}

// Rate counts recipients of mail. Each recipient of a message counts once in each number.
type Rate struct {
	Time          *time.Time `json:"time,omitempty" doc:"Start of the hour or day. Absent without step"`
	Name          string     `json:"name,omitempty" doc:"Name of the gateway, address, stream, list, tag or domain"`
	Other         bool       `json:"other,omitempty" doc:"Whether the row sums up the lists, tags or domains of a day beyond the first 200"`
	Sent          int        `json:"sent" doc:"Number accepted by a relay"`
	Failed        int        `json:"failed" doc:"Number that Postroom gave up on, without those replayed since"`
	Suppressed    int        `json:"suppressed" doc:"Number suppressed when they were due"`
	Delivered     int        `json:"delivered" doc:"Number reported as delivered"`
	Deferred      int        `json:"deferred" doc:"Number reported as delayed"`
	Hard          int        `json:"hard" doc:"Number of bounces because the address is invalid"`
	Soft          int        `json:"soft" doc:"Number of bounces for other reasons, such as a full mailbox"`
	Blocked       int        `json:"blocked" doc:"Number of bounces because the sender or the content was refused"`
	Complained    int        `json:"complained" doc:"Number reported as spam"`
	Unsubscribed  int        `json:"unsubscribed"`
	Opened        int        `json:"opened" doc:"Number opened by a person"`
	Clicked       int        `json:"clicked" doc:"Number clicked by a person"`
	OpenedBots    int        `json:"openedBots"`
	ClickedBots   int        `json:"clickedBots"`
	BounceRate    float64    `json:"bounceRate" doc:"hard / sent. 0 if nothing was sent"`
	ComplaintRate float64    `json:"complaintRate" doc:"complained / sent. 0 if nothing was sent"`
	Accepted      int        `json:"accepted" doc:"Number accepted by Postroom. 0 in rows that are grouped, except by lane"`
}

// CounterQuery narrows Counters. The zero query counts all.
type CounterQuery struct {
	Account string `query:"account" maxLength:"256" doc:"Count only this account"`
	Lane    Lane   `query:"lane" enum:"transactional,bulk" doc:"Count only this stream"`
	Seconds int    `query:"seconds" minimum:"0" maximum:"604800" doc:"Period of events:… and submit:… in seconds. Defaults to 3600"`
}

// Corrections are the changes of a replay. The zero value changes nothing.
type Corrections struct {
	To      Emails  `json:"to,omitempty" minItems:"1" maxItems:"1000" doc:"An address, or a list of addresses, instead of the failed recipients"`
	Gateway *string `json:"gateway,omitempty" maxLength:"256" doc:"Gateway to send through. If empty, the account's relays"`
	Account string  `json:"account,omitempty" maxLength:"256" doc:"Account that sends the message from now on"`
	Bound   bool    `json:"-"` // the token is bound to an account; the server sets it
}

// MessageParts is a parsed message.
type MessageParts struct {
	Size    int           `json:"size" doc:"Size of the message in bytes"`
	Headers []HeaderField `json:"headers" doc:"Header fields in their order, at most 300"`
	Parts   []MessagePart `json:"parts" doc:"Texts and files in their order, at most 50"`
	Partial bool          `json:"partial,omitempty" doc:"Whether there are more parts, or unreadable ones"`
}

// HeaderField is a field of the header of a message.
type HeaderField struct {
	Name  string `json:"name"`
	Value string `json:"value" doc:"Value, unfolded and decoded (RFC 2047)"`
	Raw   string `json:"raw" doc:"The field as it is in the message, with its name"`
}

// MessagePart is a text or a file of a message.
type MessagePart struct {
	Part        int    `json:"part" doc:"Number of the part, starting at 1. GET /v1/messages/{queueId}/parts/{part} downloads it"`
	ContentType string `json:"contentType" doc:"Media type, in lower case"`
	Filename    string `json:"filename,omitempty"`
	ContentID   string `json:"contentId,omitempty" doc:"Content-ID without brackets. The HTML refers to it as cid:…"`
	File        bool   `json:"file" doc:"Whether it is an attachment or isn't text"`
	Size        int    `json:"size" doc:"Decoded size in bytes"`
	Text        string `json:"text,omitempty" doc:"Start of a text part, at most 64 KiB. Absent for files"`
	Cut         bool   `json:"cut,omitempty" doc:"Whether text is incomplete"`
}
