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
// outbox; the last ones are listed if the setting queueKeep is more than 0. As a filter, Delayed selects the
// scheduled messages, too: EmailEngine has only this state.
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
	Code           string `json:"code,omitempty" doc:"EAUTH, EENVELOPE, EMESSAGE, ESOCKET…"`
	StatusCode     *int   `json:"statusCode" doc:"SMTP reply code; null where no reply came"`
	AccountTrouble bool   `json:"accountTrouble,omitempty" doc:"The account was refused (login, token, certificate, sender), not the message"`

	Explanation *Explanation `json:"explanation,omitempty" doc:"What it means, and what to do about it"`
}

// Progress is the progress of a message.
type Progress struct {
	Status   string         `json:"status" enum:"queued,processing,submitted,error"`
	Response string         `json:"response,omitempty" doc:"The relay's answer, once submitted"`
	Error    *DeliveryFault `json:"error,omitempty"`
}

// RecipientStatus is the state of the delivery to one recipient.
type RecipientStatus struct {
	Address           string `json:"address"`
	Status            string `json:"status" enum:"queued,sent,failed,cancelled,suppressed,replaced" doc:"replaced: a replay was sent to others in its place"`
	Response          string `json:"response,omitempty" doc:"The relay's last reply about this recipient"`
	Attempts          int    `json:"attempts"`
	ProviderMessageID string `json:"providerMessageId,omitempty" doc:"The id that the provider behind the relay gave the message"`

	Outcome MessageStatus `json:"outcome,omitempty" enum:"delivered,opened,clicked,unsubscribed,bounced,complained" doc:"What was reported about this recipient after the relay accepted the message: the weightiest, as for the message. Only in responses about one message of the log"`
}

// Stands returns the outcome of a recipient, or else its status.
func (r RecipientStatus) Stands() string { return cmp.Or(string(r.Outcome), r.Status) }

// OutboxMessage is a queued message.
type OutboxMessage struct {
	QueueID        string            `json:"queueId"`
	Account        string            `json:"account"`
	Source         string            `json:"source" enum:"api,smtp" doc:"How it was submitted"`
	MessageID      string            `json:"messageId"`
	Envelope       Envelope          `json:"envelope"`
	Subject        string            `json:"subject"`
	Created        time.Time         `json:"created"`
	Scheduled      time.Time         `json:"scheduled" doc:"When the first attempt was wanted"`
	NextAttempt    TimeOrFalse       `json:"nextAttempt" doc:"When the next attempt is due; false when none will be made. In events, job.nextAttempt is null then"`
	AttemptsMade   int               `json:"attemptsMade"`
	Attempts       int               `json:"attempts"`
	Progress       Progress          `json:"progress"`
	Reason         string            `json:"reason,omitempty" doc:"Why it waits, where that is neither its schedule nor a failed attempt: a limit, or an account in trouble"`
	State          State             `json:"state" enum:"waiting,active,scheduled,delayed,paused,failed,completed"`
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
	Header         string            `json:"header,omitempty" enum:"corrected,unchanged" doc:"Of a message replayed to other recipients. corrected: To and Cc name them in the place of the former ones, and it is signed anew; unchanged: it was handed in raw, and is sent as it was"`
	Log            []Attempt         `json:"log,omitempty" doc:"Every attempt made (single message only)"`
}

// Attempt is one attempt to hand a message to its relay.
type Attempt struct {
	Number       int        `json:"number"`
	Start        time.Time  `json:"start"`
	End          *time.Time `json:"end,omitempty" doc:"Absent where the process died during the attempt"`
	Gateway      string     `json:"gateway,omitempty"`
	Host         string     `json:"host,omitempty" doc:"The relay, as host:port"`
	Address      string     `json:"localAddress,omitempty" doc:"IP address that it was set to connect from"`
	TLS          string     `json:"tls,omitempty" doc:"TLS version; absent on a clear connection"`
	Code         int        `json:"code,omitempty" doc:"SMTP reply code"`
	Status       int        `json:"status,omitempty" doc:"HTTP status, of a gateway with an API"`
	ProviderCode string     `json:"providerCode,omitempty" doc:"The provider's own code of an error"`
	Enhanced     string     `json:"enhanced,omitempty" doc:"Enhanced status code (RFC 3463)"`
	Line         string     `json:"line,omitempty" doc:"The reply, or the error where none came"`
	Error        string     `json:"error,omitempty" doc:"EAUTH, EENVELOPE…; absent on success"`
	InDoubt      bool       `json:"inDoubt,omitempty" doc:"Died between the final dot and the reply"`
	Held         bool       `json:"held,omitempty" doc:"The account was refused, and its mail waits; the attempt does not count"`

	Dialogue []DialogueLine `json:"dialogue,omitempty" doc:"First and last lines of the SMTP dialogue, of an attempt that did not deliver to everybody; only in the log of a single message, and of its last ten attempts"`
}

// DialogueLine is one line of the SMTP dialogue of an attempt.
type DialogueLine struct {
	At   int64  `json:"at" doc:"Milliseconds since the attempt began"`
	From string `json:"from" enum:"client,server,note" doc:"client: Postroom; server: the relay; note: what happened on the connection"`
	Text string `json:"text" doc:"Printable text, without content of the mail and without credentials"`
}

// String returns the line with its time, as "   12 ms  C: EHLO client.test". S is the relay; notes have "--".
func (l DialogueLine) String() string {
	who := map[string]string{"client": "C:", "server": "S:"}[l.From]
	return fmt.Sprintf("%5d ms  %s %s", l.At, cmp.Or(who, "--"), l.Text)
}

// OutboxPage is a page of the outbox, oldest message first.
type OutboxPage struct {
	PageNumbers
	Cursor   string          `json:"cursor,omitempty" doc:"Requests the rows after these; absent on the last page"`
	Messages []OutboxMessage `json:"messages"`
}

func (p OutboxPage) rows() ([]OutboxMessage, string, int) { return p.Messages, p.Cursor, 0 }

// DeadLetter is a message that failed for good, with the data to find the cause and to send it again.
type DeadLetter struct {
	OutboxMessage
	Content []byte `json:"content" doc:"The message (RFC 5322), in base64"`
}

// DeadLetterPage is a page of dead letters, oldest first.
type DeadLetterPage struct {
	PageNumbers
	Cursor      string          `json:"cursor,omitempty" doc:"Requests the rows after these; absent on the last page"`
	DeadLetters []OutboxMessage `json:"deadLetters"`
}

func (p DeadLetterPage) rows() ([]OutboxMessage, string, int) { return p.DeadLetters, p.Cursor, 0 }

// ReplayRequest selects dead letters to queue again. All given fields must match. At least one is required.
type ReplayRequest struct {
	Account        string   `json:"account,omitempty" maxLength:"256"`
	Code           string   `json:"code,omitempty" maxLength:"64" doc:"What they failed with: EAUTH, EENVELOPE…"`
	Tag            string   `json:"tag,omitempty" maxLength:"256"`
	IDs            []string `json:"ids,omitempty" maxItems:"10000" doc:"Their queueIds"`
	AccountTrouble bool     `json:"accountTrouble,omitempty" doc:"Those that failed because the account was refused"`
	Reason         string   `json:"reason,omitempty" maxLength:"64" doc:"The reason of their explanation, such as mailboxFull"`

	Corrections *Corrections `json:"corrections,omitempty" doc:"What is done differently; to can't be among it"`
	Bound       bool         `json:"-"` // the token is bound to an account; the server sets it
}

// ReplayAnswer is the response to a ReplayRequest.
type ReplayAnswer struct {
	Replayed  int `json:"replayed"`
	Skipped   int `json:"skipped" doc:"Selected, but no longer dead, or their content is no longer kept, or beyond a quota"`
	OverQuota int `json:"overQuota,omitempty" doc:"Of these: the quota of their account has no room for them"`
}

// OutboxQuery selects messages of the outbox. The zero query selects all.
type OutboxQuery struct {
	Page          int       `query:"page" minimum:"0" doc:"Page, from 0"`
	PageSize      int       `query:"pageSize" minimum:"1" maximum:"1000" doc:"Rows a page; 20 when absent"`
	State         State     `query:"state" enum:"waiting,active,scheduled,delayed,paused,failed,completed" doc:"Only messages in this state; delayed: the scheduled ones, too; completed: as many as queueKeep keeps"`
	Account       string    `query:"account" maxLength:"256" doc:"Only messages of this account"`
	Lane          Lane      `query:"lane" enum:"transactional,bulk" doc:"Only messages in this lane"`
	Tag           string    `query:"tag" maxLength:"256" doc:"Only messages with this tag"`
	Search        string    `query:"search" maxLength:"256" doc:"Only messages with this in an address or the subject; case does not matter"`
	Reason        string    // of the explanation of their error, for dead letters; every message is read
	CreatedAfter  time.Time `query:"createdAfter" doc:"Only messages accepted at this time or later"`
	CreatedBefore time.Time `query:"createdBefore" doc:"Only messages accepted before this time"`
	Cursor        string    `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the rows after it; page is ignored"`
}

// DeadLetterFilter selects dead letters. The zero value selects all.
type DeadLetterFilter struct {
	Account string `query:"account" maxLength:"256" doc:"Only dead letters of this account"`
	Lane    Lane   `query:"lane" enum:"transactional,bulk" doc:"Only dead letters in this lane"`
	Tag     string `query:"tag" maxLength:"256" doc:"Only dead letters with this tag"`
	Search  string `query:"search" maxLength:"256" doc:"Only dead letters with this in an address or the subject; case does not matter"`
}

// DeadLetterQuery selects a page of dead letters.
type DeadLetterQuery struct {
	PageQuery
	DeadLetterFilter
	Reason string `query:"reason" maxLength:"64" doc:"Only dead letters whose error has an explanation with this reason; every one is read"`
	Cursor string `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the rows after it; page is ignored"`
}

// DeleteAnswer reports whether a message was cancelled. Code is the reason if it was not, if known.
type DeleteAnswer struct {
	Deleted bool   `json:"deleted"`
	Code    string `json:"code,omitempty" doc:"MessageActive: it is being sent at this moment"`
}

// BulkDeleteAnswer is the number of messages that were cancelled.
type BulkDeleteAnswer struct {
	Deleted int `json:"deleted"`
	Active  int `json:"active,omitempty" doc:"Left alone, because they were being sent"`
}

// OutboxPatch changes a queued message. Absent fields stay as they are.
type OutboxPatch struct {
	SendAt           *time.Time `json:"sendAt,omitempty"`
	Gateway          *string    `json:"gateway,omitempty" maxLength:"256" doc:"Empty: the account's own relay"`
	DeliveryAttempts *int       `json:"deliveryAttempts,omitempty" minimum:"1" maximum:"100"`
	Bound            bool       `json:"-"` // the token is bound to an account; the server sets it
}
