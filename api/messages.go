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
	StatusFailed     MessageStatus = "failed"     // failed for good; its content is no longer kept
	StatusCancelled  MessageStatus = "cancelled"  // cancelled before sending
	StatusSuppressed MessageStatus = "suppressed" // not sent: all recipients are suppressed
	StatusDead       MessageStatus = "dead"       // failed for good; a dead letter that can be replayed
)

// The outcomes: what became known of a message after a relay accepted it. They select messages of the log as
// the statuses do. A message has the last of these that was told of one of its recipients. Bots do not count.
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
	Recipients []string      `json:"recipients" doc:"Recipients it is about"`
	Details    EventDetails  `json:"details"`

	Explanation *Explanation `json:"explanation,omitempty" doc:"Of a bounce: what the reply means, and what to do about it"`
}

// Stands returns the outcome of a message, or else its status.
func (m LoggedMessage) Stands() MessageStatus {
	if m.Outcome != nil {
		return m.Outcome.Status
	}
	return m.Status
}

// String returns the words of a report: the reply of the recipient's server, or why in a word.
func (o Outcome) String() string {
	return cmp.Or(o.Details.Diagnostic, o.Details.Reason, o.Details.Status)
}

// LoggedMessage is a message of the email log, queued or ended.
type LoggedMessage struct {
	QueueID        string            `json:"queueId"`
	Account        string            `json:"account"`
	Source         string            `json:"source" enum:"api,smtp" doc:"How it was submitted"`
	MessageID      string            `json:"messageId"`
	Envelope       Envelope          `json:"envelope"`
	Subject        string            `json:"subject"`
	Status         MessageStatus     `json:"status" enum:"queued,sending,sent,failed,cancelled,suppressed,dead"`
	Outcome        *Outcome          `json:"outcome,omitempty" doc:"What was told of it after a relay accepted it: the weightiest of delivered, opened, clicked, unsubscribed, bounced, complained, in this order"`
	Created        time.Time         `json:"created"`
	Scheduled      time.Time         `json:"scheduled" doc:"When the first attempt was wanted"`
	Ended          *time.Time        `json:"ended,omitempty" doc:"When the result for its last recipient was known, or when the dead letter failed; absent while the message waits or is being sent"`
	ContentUntil   *time.Time        `json:"contentUntil,omitempty" doc:"Until when the content of a message that was sent is kept (outbox.keepContent), in the answer about one message; absent if it is not, and while the message is in the outbox"`
	NextAttempt    TimeOrFalse       `json:"nextAttempt" doc:"When the next attempt is due; false when none will be made"`
	AttemptsMade   int               `json:"attemptsMade"`
	Attempts       int               `json:"attempts"`
	Response       string            `json:"response,omitempty" doc:"The relay's last reply, of a message sent"`
	Error          *DeliveryFault    `json:"error,omitempty" doc:"What the last attempt failed with"`
	Reason         string            `json:"reason,omitempty" doc:"Why it waits, or why it was cancelled"`
	Recipients     []RecipientStatus `json:"recipients"`
	Gateway        *string           `json:"gateway"`
	IdempotencyKey string            `json:"idempotencyKey,omitempty"`
	Lane           Lane              `json:"lane" enum:"transactional,bulk"`
	Priority       Priority          `json:"priority,omitempty" enum:"high,low" doc:"Absent: normal"`
	TraceID        string            `json:"traceId,omitempty" doc:"Of its OpenTelemetry trace; absent: it has none"`
	Tags           []string          `json:"tags,omitempty"`
	Metadata       json.RawMessage   `json:"metadata,omitempty"`
	InDoubt        int               `json:"inDoubt,omitempty" doc:"Attempts that died between the final dot and the reply"`
	DeliverBy      *time.Time        `json:"deliverBy,omitempty"`
	Template       *TemplateRef      `json:"template,omitempty" doc:"The stored template it is made from"`
	Size           int               `json:"size" doc:"Bytes of the message (RFC 5322); of a message that is filled in when it is sent, 0 until then"`
	Log            []Attempt         `json:"log,omitempty" doc:"Every attempt made (single message only)"`
}

// LogPage is a page of the email log, newest message first.
type LogPage struct {
	Total    int             `json:"total" doc:"Messages that match. A filter by tag or search reads the messages themselves, newest first and 100,000 at most in one call; total then counts those found, and cursor goes on"`
	Page     int             `json:"page"`
	Pages    int             `json:"pages"`
	Cursor   string          `json:"cursor,omitempty" doc:"Requests the rows after these; absent on the last page"`
	Messages []LoggedMessage `json:"messages"`
}

func (p LogPage) rows() ([]LoggedMessage, string, int) { return p.Messages, p.Cursor, 0 }

// LogQuery selects messages of the email log. The zero query selects all.
type LogQuery struct {
	Page          int           `query:"page" minimum:"0" doc:"Page, from 0"`
	PageSize      int           `query:"pageSize" minimum:"1" maximum:"1000" doc:"Rows a page; 20 when absent"`
	Status        MessageStatus `query:"status" enum:"queued,sending,sent,failed,cancelled,suppressed,dead,delivered,opened,clicked,unsubscribed,bounced,complained" doc:"Only messages with this status or outcome. failed selects dead messages too, dead only those that have a dead letter"`
	Account       string        `query:"account" maxLength:"256" doc:"Only messages of this account"`
	Lane          Lane          `query:"lane" enum:"transactional,bulk" doc:"Only messages in this lane"`
	Tag           string        `query:"tag" maxLength:"256" doc:"Only messages with this tag"`
	Search        string        `query:"search" maxLength:"1024" doc:"Only messages with this in an address or the subject, case does not matter, or with this Message-ID or idempotency key"`
	CreatedAfter  time.Time     `query:"createdAfter" doc:"Only messages accepted at this time or later"`
	CreatedBefore time.Time     `query:"createdBefore" doc:"Only messages accepted before this time"`
	Cursor        string        `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the rows after it; page is ignored"`
}

// MessageEvent is an event of a message, as in its webhook.
type MessageEvent struct {
	EventID    string    `json:"eventId"`
	Event      string    `json:"event" doc:"messageQueued, messageSent…"`
	Date       time.Time `json:"date"`
	Recipients []string  `json:"recipients" doc:"Recipients it is about"`
	Attempt    *Attempt  `json:"attempt,omitempty" doc:"The attempt that caused it"`
	Response   string    `json:"response,omitempty" doc:"The relay's reply, of messageSent"`
	Reason     string    `json:"reason,omitempty" doc:"Of messageCancelled, messageSuppressed and messageWaited"`

	// of messageWaited, which only this list has
	Until *time.Time `json:"until,omitempty" doc:"Of messageWaited: end of a wait for a limit, a connection, the account or the end of a pause; absent: it still waits"`

	Details *EventDetails `json:"details,omitempty" doc:"Of events after a relay accepted the message: messageDelivered, messageBounce, trackOpen…"`
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
	Source            string `json:"source,omitempty" doc:"Source: a provider's name, bounce, track, unsubscribe"`
	ProviderMessageID string `json:"providerMessageId,omitempty" doc:"The provider's own id of the message"`
	Action            string `json:"action,omitempty" doc:"failed, delayed, delivered, relayed or expanded (RFC 3464)"`
	BounceType        string `json:"bounceType,omitempty" doc:"hard: the address is dead; soft: this message was refused"`
	Status            string `json:"status,omitempty" doc:"Enhanced status code (RFC 3463)"`
	Code              int    `json:"smtpResponseCode,omitempty" doc:"Of the reply that is quoted"`
	Diagnostic        string `json:"smtpResponse,omitempty" doc:"The reply of the recipient's server, or the words of the source"`
	MTA               string `json:"mta,omitempty" doc:"The server that sent it"`
	FeedbackType      string `json:"feedbackType,omitempty" doc:"Of a complaint (RFC 5965): abuse, fraud, not-spam…"`
	Reason            string `json:"reason,omitempty" doc:"Why, in one word"`
	URL               string `json:"url,omitempty" doc:"The link that was followed"`
	RemoteAddress     string `json:"remoteAddress,omitempty" doc:"Of the visitor who opened, clicked or unsubscribed, as far as it is kept"`
	UserAgent         string `json:"userAgent,omitempty"`
	Bot               bool   `json:"bot,omitempty" doc:"A bot did it, not a person"`
	BotReason         string `json:"botReason,omitempty" doc:"The rule that says so"`
	ListID            string `json:"listId,omitempty" doc:"Absent: all mail of the account"`

	Raw json.RawMessage `json:"raw,omitempty" doc:"The event as the provider sent it, with feedback.keepRaw"`
}

// MessageEvents is the events of one message, oldest first.
type MessageEvents struct {
	QueueID string         `json:"queueId"`
	Events  []MessageEvent `json:"events"`
}

// RatesQuery selects counters. The zero query sums the last 30 days.
type RatesQuery struct {
	Account string    `query:"account" maxLength:"256" doc:"Only mail of this account"`
	From    time.Time `query:"from" doc:"From this hour on; of tags, lists and domains from this day of UTC, unless step is hour. Default: 30 days before to"`
	To      time.Time `query:"to" doc:"Until this hour or day. Default: now"`
	By      string    `query:"by" enum:"gateway,localAddress,lane,list,tag,domain" doc:"A row for each of these; domain is the recipient's"`
	Name    string    `query:"name" maxLength:"256" doc:"Only the gateway, tag… of this name"`
	Step    string    `query:"step" enum:"hour,day" doc:"A row for each hour or day"`
}

// Rates are counters of what became of mail.
type Rates struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Rates []Rate    `json:"rates" doc:"By time, then by the number sent. What is 0 in all numbers is left out"`
}

// Rate counts recipients of mail. Each recipient of a message counts once in each number.
type Rate struct {
	Time          *time.Time `json:"time,omitempty" doc:"Begin of the hour or day; absent without step"`
	Name          string     `json:"name,omitempty" doc:"The gateway, address, lane, list, tag or domain"`
	Other         bool       `json:"other,omitempty" doc:"The lists, tags or domains of a day after the first 200, together"`
	Sent          int        `json:"sent" doc:"Accepted by a relay"`
	Failed        int        `json:"failed" doc:"Given up by Postroom, and not replayed since"`
	Suppressed    int        `json:"suppressed" doc:"Suppressed when it was to be sent"`
	Delivered     int        `json:"delivered" doc:"Reported as delivered"`
	Deferred      int        `json:"deferred" doc:"Reported as delayed"`
	Hard          int        `json:"hard" doc:"Bounced: the address is dead"`
	Soft          int        `json:"soft" doc:"Bounced: a full mailbox and the like"`
	Blocked       int        `json:"blocked" doc:"Bounced: the sender or the content was refused"`
	Complained    int        `json:"complained" doc:"Reported as spam"`
	Unsubscribed  int        `json:"unsubscribed"`
	Opened        int        `json:"opened" doc:"By a person"`
	Clicked       int        `json:"clicked" doc:"By a person"`
	OpenedBots    int        `json:"openedBots"`
	ClickedBots   int        `json:"clickedBots"`
	BounceRate    float64    `json:"bounceRate" doc:"hard / sent; 0 if nothing was sent"`
	ComplaintRate float64    `json:"complaintRate" doc:"complained / sent"`
	Accepted      int        `json:"accepted" doc:"Accepted by Postroom, to be sent; only of all mail and by lane, else 0"`
}

// CounterQuery narrows Counters. The zero query counts all.
type CounterQuery struct {
	Account string `query:"account" maxLength:"256" doc:"Only the counters of this account"`
	Lane    Lane   `query:"lane" enum:"transactional,bulk" doc:"Only the counters of this lane"`
	Seconds int    `query:"seconds" minimum:"0" maximum:"604800" doc:"The time that events:… and submit:… count; 3600 when absent or 0"`
}

// Corrections are the changes of a replay. The zero value changes nothing.
type Corrections struct {
	To      Emails  `json:"to,omitempty" minItems:"1" maxItems:"1000" doc:"An address, or an array of them: they replace the recipients that failed"`
	Gateway *string `json:"gateway,omitempty" maxLength:"256" doc:"Empty: the account's own relays"`
	Account string  `json:"account,omitempty" maxLength:"256" doc:"Sends it from here on"`
	Bound   bool    `json:"-"` // the token is bound to an account; the server sets it
}

// MessageParts is a message taken apart.
type MessageParts struct {
	Size    int           `json:"size" doc:"Bytes of the message"`
	Headers []HeaderField `json:"headers" doc:"The fields of the header in their order, 300 at most"`
	Parts   []MessagePart `json:"parts" doc:"Texts and files in their order, 50 at most"`
	Partial bool          `json:"partial,omitempty" doc:"There are more parts, or the rest can't be read"`
}

// HeaderField is a field of the header of a message.
type HeaderField struct {
	Name  string `json:"name"`
	Value string `json:"value" doc:"Unfolded and decoded (RFC 2047)"`
	Raw   string `json:"raw" doc:"As it is in the message, with its name"`
}

// MessagePart is a text or a file of a message.
type MessagePart struct {
	Part        int    `json:"part" doc:"Its number, from 1; GET /v1/messages/{queueId}/parts/{part} downloads it"`
	ContentType string `json:"contentType" doc:"Its media type, in lower case"`
	Filename    string `json:"filename,omitempty"`
	ContentID   string `json:"contentId,omitempty" doc:"Without brackets; the html refers to it as cid:…"`
	File        bool   `json:"file" doc:"It is an attachment, or no text"`
	Size        int    `json:"size" doc:"Bytes, decoded"`
	Text        string `json:"text,omitempty" doc:"Of a text or html that is no file: its beginning, 64 KiB at most"`
	Cut         bool   `json:"cut,omitempty" doc:"text is only the beginning"`
}
