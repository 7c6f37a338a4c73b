package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// State is the state of a queued message.
type State string

// The states of the outbox. A waiting message of a paused queue is Paused. Completed messages have left the
// outbox; the last of them are listed if the setting queueKeep is more than 0. As a filter, Delayed selects
// the scheduled messages, too: EmailEngine has only this state.
const (
	Waiting   State = "waiting"
	Active    State = "active"
	Scheduled State = "scheduled" // for a time that a person or a program chose
	Delayed   State = "delayed"   // after a failed attempt, for a limit, or for an account in trouble
	Paused    State = "paused"
	Failed    State = "failed"

	Completed State = "completed"
)

// TimeOrFalse is a time, or false if there is none.
type TimeOrFalse struct{ Time *time.Time }

// MarshalJSON writes the time, or false.
func (t TimeOrFalse) MarshalJSON() ([]byte, error) {
	if t.Time == nil {
		return []byte("false"), nil
	}
	return json.Marshal(t.Time.UTC().Truncate(time.Millisecond))
}

// UnmarshalJSON reads a time, or false, or null.
func (t *TimeOrFalse) UnmarshalJSON(raw []byte) error {
	if s := string(raw); s == "false" || s == "null" {
		t.Time = nil
		return nil
	}
	t.Time = new(time.Time)
	return json.Unmarshal(raw, t.Time)
}

// DeliveryFault is the error of the last attempt.
type DeliveryFault struct {
	Message        string `json:"message"`
	Code           string `json:"code,omitempty" doc:"Error code, such as EAUTH, EENVELOPE, EMESSAGE or ESOCKET"`
	StatusCode     *int   `json:"statusCode" doc:"SMTP code of the reply. null without a reply"`
	AccountTrouble bool   `json:"accountTrouble,omitempty" doc:"Whether the account was refused (login, token, certificate or sender) instead of the message"`

	Explanation *Explanation `json:"explanation,omitempty" doc:"Meaning of the error and what to do"`
}

// Progress is the progress of a message.
type Progress struct {
	Status   string         `json:"status" enum:"queued,processing,submitted,error"`
	Response string         `json:"response,omitempty" doc:"The relay's reply to the submitted message"`
	Error    *DeliveryFault `json:"error,omitempty"`
}

// RecipientStatus is the state of the delivery to one recipient.
type RecipientStatus struct {
	Address           string `json:"address"`
	Status            string `json:"status" enum:"queued,sent,failed,cancelled,suppressed,replaced" doc:"Status of the recipient. replaced means that a replay went to other recipients instead"`
	Response          string `json:"response,omitempty" doc:"The relay's last reply about this recipient"`
	Attempts          int    `json:"attempts"`
	ProviderMessageID string `json:"providerMessageId,omitempty" doc:"ID that the provider behind the relay gave the message"`

	Outcome MessageStatus `json:"outcome,omitempty" enum:"delivered,opened,clicked,unsubscribed,bounced,complained" doc:"Most significant event reported about this recipient after the relay accepted the message. Only for a single message of the log"`
}

// Stands returns the outcome of a recipient, or else its status.
func (r RecipientStatus) Stands() string { return cmp.Or(string(r.Outcome), r.Status) }

// OutboxMessage is a queued message.
type OutboxMessage struct {
	QueueID        string            `json:"queueId"`
	Account        string            `json:"account"`
	Source         string            `json:"source" enum:"api,smtp" doc:"How the message was submitted"`
	MessageID      string            `json:"messageId"`
	Envelope       Envelope          `json:"envelope"`
	Subject        string            `json:"subject"`
	Created        time.Time         `json:"created"`
	Scheduled      time.Time         `json:"scheduled" doc:"Requested time of the first attempt"`
	NextAttempt    TimeOrFalse       `json:"nextAttempt" doc:"Time of the next attempt. false if there won't be one; null in the job.nextAttempt of an event"`
	AttemptsMade   int               `json:"attemptsMade"`
	Attempts       int               `json:"attempts"`
	Progress       Progress          `json:"progress"`
	Reason         string            `json:"reason,omitempty" doc:"Why the message waits, unless it is scheduled or an attempt failed: a limit, or the account's problem"`
	State          State             `json:"state" enum:"waiting,active,scheduled,delayed,paused,failed,completed"`
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
	Header         string            `json:"header,omitempty" enum:"corrected,unchanged" doc:"For a message replayed to other recipients. It is corrected if To and Cc name the new recipients and Postroom signed the message again. It is unchanged if the message was submitted raw"`
	Log            []Attempt         `json:"log,omitempty" doc:"All attempts. Only for a single message"`
}

// Attempt is one attempt to hand a message to its relay.
type Attempt struct {
	Number       int        `json:"number"`
	Start        time.Time  `json:"start"`
	End          *time.Time `json:"end,omitempty" doc:"End of the attempt. Absent if the process died during it"`
	Gateway      string     `json:"gateway,omitempty"`
	Host         string     `json:"host,omitempty" doc:"Relay, as host:port"`
	Address      string     `json:"localAddress,omitempty" doc:"Configured local IP address"`
	TLS          string     `json:"tls,omitempty" doc:"TLS version. Absent for an unencrypted connection"`
	Code         int        `json:"code,omitempty" doc:"SMTP reply code"`
	Status       int        `json:"status,omitempty" doc:"HTTP status, if the gateway uses an API"`
	ProviderCode string     `json:"providerCode,omitempty" doc:"The provider's own error code"`
	Enhanced     string     `json:"enhanced,omitempty" doc:"Enhanced status code (RFC 3463)"`
	Line         string     `json:"line,omitempty" doc:"The reply, or the error if there was no reply"`
	Error        string     `json:"error,omitempty" doc:"Error code, such as EAUTH or EENVELOPE. Absent on success"`
	InDoubt      bool       `json:"inDoubt,omitempty" doc:"Whether it ended between the end of the message and the reply"`
	Held         bool       `json:"held,omitempty" doc:"Whether the account was refused and its messages wait. Such an attempt doesn't count"`

	Dialogue []DialogueLine `json:"dialogue,omitempty" doc:"First and last lines of the SMTP dialogue of an attempt that didn't deliver to all recipients. Only for a single message, and only for its last ten attempts"`
}

// DialogueLine is one line of the SMTP dialogue of an attempt.
type DialogueLine struct {
	At   int64  `json:"at" doc:"Milliseconds since the start of the attempt"`
	From string `json:"from" enum:"client,server,note" doc:"Sender of the line: client is Postroom, server is the relay, and note describes the connection"`
	Text string `json:"text" doc:"Printable text, without the message's content and without credentials"`
}

// String returns the line with its time, as "   12 ms  C: EHLO client.test". S is the relay; notes have "--".
func (l DialogueLine) String() string {
	who := map[string]string{"client": "C:", "server": "S:"}[l.From]
	return fmt.Sprintf("%5d ms  %s %s", l.At, cmp.Or(who, "--"), l.Text)
}

// OutboxPage is a page of the outbox, oldest message first.
type OutboxPage struct {
	PageNumbers
	Cursor   string          `json:"cursor,omitempty" doc:"Cursor for the next rows. Absent on the last page"`
	Messages []OutboxMessage `json:"messages"`
}

func (p OutboxPage) rows() ([]OutboxMessage, string, int) { return p.Messages, p.Cursor, 0 }

// DeadLetter is a message that failed permanently, with the data to find the cause and to replay it.
type DeadLetter struct {
	OutboxMessage
	Content []byte `json:"content" doc:"The message (RFC 5322) in base64"`
}

// DeadLetterPage is a page of dead letters, oldest first.
type DeadLetterPage struct {
	PageNumbers
	Cursor      string          `json:"cursor,omitempty" doc:"Cursor for the next rows. Absent on the last page"`
	DeadLetters []OutboxMessage `json:"deadLetters"`
}

func (p DeadLetterPage) rows() ([]OutboxMessage, string, int) { return p.DeadLetters, p.Cursor, 0 }

// ReplayRequest selects dead letters to queue again. All given fields must match. At least one is required.
type ReplayRequest struct {
	Account        string   `json:"account,omitempty" maxLength:"256"`
	Code           string   `json:"code,omitempty" maxLength:"64" doc:"Select dead letters by error code, such as EAUTH or EENVELOPE"`
	Tag            string   `json:"tag,omitempty" maxLength:"256"`
	IDs            []string `json:"ids,omitempty" maxItems:"10000" doc:"Select dead letters by queueId"`
	AccountTrouble bool     `json:"accountTrouble,omitempty" doc:"Select dead letters that failed because the account was refused"`
	Reason         string   `json:"reason,omitempty" maxLength:"64" doc:"Select dead letters by the reason in their explanation, such as mailboxFull"`

	Corrections *Corrections `json:"corrections,omitempty" doc:"Changes to make to the messages. You can't set to"`
	Bound       bool         `json:"-"` // the token is bound to an account; the server sets it
}

// ReplayAnswer is the response to a ReplayRequest.
type ReplayAnswer struct {
	Replayed  int `json:"replayed"`
	Skipped   int `json:"skipped" doc:"Number of selected messages that are no longer dead, have no content any more or exceed a quota"`
	OverQuota int `json:"overQuota,omitempty" doc:"Number of skipped messages that exceed their account's quota"`
}

// OutboxQuery selects messages of the outbox. The zero query selects all.
type OutboxQuery struct {
	Page          int       `query:"page" minimum:"0" doc:"Page number, starting at 0"`
	PageSize      int       `query:"pageSize" minimum:"1" maximum:"1000" doc:"Rows per page. Defaults to 20"`
	State         State     `query:"state" enum:"waiting,active,scheduled,delayed,paused,failed,completed" doc:"Filter by state. delayed includes scheduled messages. completed shows as many as queueKeep keeps"`
	Account       string    `query:"account" maxLength:"256" doc:"Filter by account"`
	Lane          Lane      `query:"lane" enum:"transactional,bulk" doc:"Filter by stream"`
	Tag           string    `query:"tag" maxLength:"256" doc:"Filter by tag"`
	Search        string    `query:"search" maxLength:"256" doc:"Filter by part of an address or of the subject (case-insensitive)"`
	Reason        string    // the reason in a dead letter's explanation; every message is read
	CreatedAfter  time.Time `query:"createdAfter" doc:"Only messages accepted at this time or later"`
	CreatedBefore time.Time `query:"createdBefore" doc:"Only messages accepted before this time"`
	Cursor        string    `query:"cursor" maxLength:"1024" doc:"Cursor from an earlier response, to continue after it. Overrides page"`
}

// DeadLetterFilter selects dead letters. The zero value selects all.
type DeadLetterFilter struct {
	Account string `query:"account" maxLength:"256" doc:"Filter by account"`
	Lane    Lane   `query:"lane" enum:"transactional,bulk" doc:"Filter by stream"`
	Tag     string `query:"tag" maxLength:"256" doc:"Filter by tag"`
	Search  string `query:"search" maxLength:"256" doc:"Filter by part of an address or of the subject (case-insensitive)"`
}

// DeadLetterQuery selects a page of dead letters.
type DeadLetterQuery struct {
	PageQuery
	DeadLetterFilter
	Reason string `query:"reason" maxLength:"64" doc:"Filter by the reason in the error's explanation. This reads every dead letter"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"Cursor from an earlier response, to continue after it. Overrides page"`
}

// DeleteAnswer reports whether a message was cancelled. Code is the reason if it was not, if known.
type DeleteAnswer struct {
	Deleted bool   `json:"deleted"`
	Code    string `json:"code,omitempty" doc:"MessageActive if the message is being sent right now"`
}

// BulkDeleteAnswer is the number of messages that were cancelled.
type BulkDeleteAnswer struct {
	Deleted int `json:"deleted"`
	Active  int `json:"active,omitempty" doc:"Number of messages that weren't deleted because they were being sent"`
}

// OutboxPatch changes a queued message. Absent fields stay as they are.
type OutboxPatch struct {
	SendAt           *time.Time `json:"sendAt,omitempty"`
	Gateway          *string    `json:"gateway,omitempty" maxLength:"256" doc:"Gateway to send through. If empty, the account's own relay"`
	DeliveryAttempts *int       `json:"deliveryAttempts,omitempty" minimum:"1" maximum:"100"`
	Bound            bool       `json:"-"` // the token is bound to an account; the server sets it
}
