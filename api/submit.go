package api

import (
	"bytes"
	"encoding/json"
	"time"
)

// Address is a mailbox: a display name and an address (RFC 5322 section 3.4).
type Address struct {
	Name    string `json:"name,omitempty" maxLength:"256" doc:"Display name"`
	Address string `json:"address" maxLength:"256" doc:"Email address"`
}

// OneOrMany is a list. In JSON a single value is a list of one.
type OneOrMany[T any] []T

// UnmarshalJSON reads a list, a single value, or null.
func (l *OneOrMany[T]) UnmarshalJSON(raw []byte) error {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] != '[' && raw[0] != 'n' {
		*l = make([]T, 1)
		return json.Unmarshal(raw, &(*l)[0])
	}
	return json.Unmarshal(raw, (*[]T)(l))
}

// Addresses is a list of addresses.
type Addresses = OneOrMany[Address]

// Emails are addresses without names.
type Emails = OneOrMany[string]

// HeaderValue is a value of a header.
type HeaderValue string

// Headers are headers by name. A header with several values is written as often.
type Headers map[string]OneOrMany[HeaderValue]

// Envelope is the SMTP sender and recipients (RFC 5321), if they differ from the headers.
type Envelope struct {
	From string   `json:"from" doc:"Return path; empty for the null sender"`
	To   []string `json:"to" maxItems:"10000" doc:"Recipients"`
}

// Attachment is a file that travels with the message.
type Attachment struct {
	Filename           string `json:"filename,omitempty" maxLength:"256"`
	Content            []byte `json:"content" doc:"The file, in base64"`
	ContentType        string `json:"contentType,omitempty" maxLength:"256" doc:"Media type; guessed from the file name when absent"`
	ContentDisposition string `json:"contentDisposition,omitempty" enum:"inline,attachment"`
	CID                string `json:"cid,omitempty" maxLength:"256" doc:"Content-ID for cid: links in html"`
	Encoding           string `json:"encoding,omitempty" enum:"base64" doc:"Of content; always base64"`
}

// DSN asks the relay for delivery status notifications (RFC 3461).
type DSN struct {
	ID        string   `json:"id,omitempty" maxLength:"256" doc:"Envelope id, returned in notifications"`
	Return    string   `json:"return,omitempty" enum:"headers,full" doc:"What a failure notification returns"`
	Notify    []string `json:"notify,omitempty" enum:"never,success,failure,delay" doc:"When to notify"`
	Recipient string   `json:"recipient,omitempty" maxLength:"256" doc:"Address that notifications name as the original recipient"`
}

// SubmitRequest is a message to send.
type SubmitRequest struct {
	Account          string           `json:"account,omitempty" maxLength:"256" doc:"Account that sends; the default account when absent"`
	From             *Address         `json:"from,omitempty" doc:"The account's own name and address when absent"`
	To               Addresses        `json:"to,omitempty" maxItems:"10000"`
	CC               Addresses        `json:"cc,omitempty" maxItems:"10000"`
	BCC              Addresses        `json:"bcc,omitempty" maxItems:"10000" doc:"Never written into a header"`
	ReplyTo          Addresses        `json:"replyTo,omitempty" maxItems:"10000"`
	Subject          string           `json:"subject,omitempty" maxLength:"10240"`
	Text             string           `json:"text,omitempty"`
	HTML             string           `json:"html,omitempty" doc:"Without text, a text part is made from it; data: images become inline attachments"`
	PreviewText      string           `json:"previewText,omitempty" maxLength:"1024" doc:"What mail programs show beside the subject"`
	Raw              []byte           `json:"raw,omitempty" doc:"A whole RFC 5322 message in base64; excludes html, text and attachments"`
	Envelope         *Envelope        `json:"envelope,omitempty" doc:"Taken from the headers when absent"`
	Attachments      []Attachment     `json:"attachments,omitempty" maxItems:"1000"`
	Headers          Headers          `json:"headers,omitempty" doc:"Added to the message; a header of several values is written as often"`
	MessageID        string           `json:"messageId,omitempty" maxLength:"996" doc:"Message-ID; generated when absent"`
	InReplyTo        string           `json:"inReplyTo,omitempty" maxLength:"996" doc:"Message-ID this message answers"`
	References       []string         `json:"references,omitempty" maxItems:"100" doc:"Message-IDs of the thread, oldest first"`
	SendAt           *time.Time       `json:"sendAt,omitempty" doc:"When to send; now when absent or past. At most message.maxAhead from now, a year by default"`
	DeliveryAttempts int              `json:"deliveryAttempts,omitempty" minimum:"1" maximum:"100" doc:"Attempts in all; the setting when absent"`
	RequireTLS       bool             `json:"requireTls,omitempty" doc:"Every server on the way must use verified TLS (REQUIRETLS, RFC 8689); fails when the relay does not offer that"`
	Gateway          string           `json:"gateway,omitempty" maxLength:"256" doc:"Gateway to send through; the account's own relay when absent"`
	Proxy            string           `json:"proxy,omitempty" maxLength:"2048" doc:"Connect to the relay through this proxy: http, https or socks5 URL without a password. Needs a token that may change accounts"`
	LocalAddress     string           `json:"localAddress,omitempty" maxLength:"64" doc:"IP address to connect to the relay from. Needs a token that may change accounts"`
	DSN              *DSN             `json:"dsn,omitempty"`
	DryRun           bool             `json:"dryRun,omitempty" doc:"Build the message and return it, queue nothing"`
	IdempotencyKey   string           `json:"idempotencyKey,omitempty" maxLength:"1024" doc:"One key, one message; the same as the header Idempotency-Key"`
	Lane             Lane             `json:"lane,omitempty" enum:"transactional,bulk" doc:"bulk never delays transactional; transactional when absent"`
	Priority         Priority         `json:"priority,omitempty" enum:"high,normal,low" doc:"Order among the waiting messages of the account in this lane: high goes before, low after those that came earlier; normal when absent"`
	Metadata         json.RawMessage  `json:"metadata,omitempty" doc:"An object of at most 4 KiB, echoed in every event of the message"`
	Tags             []string         `json:"tags,omitempty" maxItems:"10" doc:"For filtering"`
	DeliverBy        *time.Time       `json:"deliverBy,omitempty" doc:"Give up after this moment, whatever attempts remain"`
	Copy             *bool            `json:"copy,omitempty" doc:"Accepted for EmailEngine's clients; Postroom has no mailbox to copy to"`
	SentMailPath     string           `json:"sentMailPath,omitempty" doc:"Accepted for EmailEngine's clients; Postroom has no mailbox to copy to"`
	Reference        json.RawMessage  `json:"reference,omitempty" doc:"Refused: Postroom has no mailbox to take a stored message from; use inReplyTo and references"`
	Template         string           `json:"template,omitempty" maxLength:"256" doc:"Id of a stored template, which gives subject, previewText, html and text; subject and previewText of the request go before its own"`
	Render           *Render          `json:"render,omitempty" doc:"How html, text, subject and previewText are filled in (Handlebars); false: they go as they are. A template is filled in without it, too"`
	MailMerge        []MailMergeEntry `json:"mailMerge,omitempty" minItems:"1" maxItems:"10000" doc:"One message for each entry, filled in with its params; excludes to, cc, bcc, raw, envelope, messageId and render with params"`
	ListID           string           `json:"listId,omitempty" maxLength:"256" doc:"Mailing list that the message is of, such as news: adds List-ID and one-click List-Unsubscribe, and skips recipients who unsubscribed from it. Needs a public address (serviceUrl or baseUrl), and one recipient, or mailMerge"`
	TrackOpens       *bool            `json:"trackOpens,omitempty" doc:"Count opens by a picture in html; the account's choice when absent, else the setting's. Needs a public address"`
	TrackClicks      *bool            `json:"trackClicks,omitempty" doc:"Count clicks by links of html that lead over this Postroom; the account's choice when absent, else the setting's. Needs a public address"`
	TrackingEnabled  *bool            `json:"trackingEnabled,omitempty" doc:"Sets both, for older clients of EmailEngine"`
	BaseURL          string           `json:"baseUrl,omitempty" maxLength:"2048" doc:"Public address that links in this message lead to; the setting serviceUrl when absent"`
	Locale           string           `json:"locale,omitempty" maxLength:"64" doc:"Language of the message (BCP 47): chooses the variant of a template, and how numbers and dates are written; the account's when absent, else en"`
	TZ               string           `json:"tz,omitempty" maxLength:"64" doc:"Time zone of dates in templates, such as Europe/Zurich; the account's when absent, else UTC"`
	KeyRequired      bool             `json:"-"` // the token demands an idempotency key; the server sets it
	Bound            bool             `json:"-"` // the token is bound to the account; the server sets it
	Token            string           `json:"-"` // id that its quota is counted by; the server sets it
	TokenQuota       *TokenQuota      `json:"-"` // of the token; the server sets it
}

// Render is the options of rendering a message's templates. In JSON false is Render{Off: true}.
type Render struct {
	Off     bool            `json:"-"`
	Format  string          `json:"format,omitempty" enum:"html,markdown" doc:"What html is written in: html when absent. A stored template has its own"`
	Params  json.RawMessage `json:"params,omitempty" doc:"An object: what {{params.name}} stands for"`
	Missing string          `json:"missing,omitempty" enum:"empty,error" doc:"What happens to a variable that params lack: nothing is printed, or the request is refused with the names of all. The template's when absent, else the setting templates.missing"`
}

// MarshalJSON writes false for a Render that is off.
func (r Render) MarshalJSON() ([]byte, error) {
	if r.Off {
		return []byte("false"), nil
	}
	type plain Render
	return json.Marshal(plain(r))
}

// UnmarshalJSON reads an object or false.
func (r *Render) UnmarshalJSON(raw []byte) error {
	if string(raw) == "false" {
		*r = Render{Off: true}
		return nil
	}
	type plain Render
	return json.Unmarshal(raw, (*plain)(r))
}

// MailMergeEntry is one message of a mail merge.
type MailMergeEntry struct {
	To             Address         `json:"to"`
	MessageID      string          `json:"messageId,omitempty" maxLength:"996" doc:"Message-ID; generated when absent"`
	Params         json.RawMessage `json:"params,omitempty" doc:"An object: what {{params.name}} stands for in this message"`
	SendAt         *time.Time      `json:"sendAt,omitempty" doc:"When to send this message; the request's sendAt when absent"`
	Metadata       json.RawMessage `json:"metadata,omitempty" doc:"The request's metadata when absent"`
	IdempotencyKey string          `json:"idempotencyKey,omitempty" maxLength:"1024" doc:"One key, one message. Absent, but given for the request: made of that and the entry's place"`
}

// Lane separates bulk from transactional mail, so that bulk does not delay it.
type Lane string

// The lanes. The zero Lane means Transactional.
const (
	Transactional Lane = "transactional"
	Bulk          Lane = "bulk"
)

// Priority is the order of a message among those that wait with it: of the same account and lane.
type Priority string

// The priorities. The zero Priority means Normal.
const (
	High   Priority = "high"
	Normal Priority = "normal"
	Low    Priority = "low"
)

// IdempotencyStatus reports whether a key was new.
type IdempotencyStatus struct {
	Key    string        `json:"key"`
	Status string        `json:"status" enum:"MISS,HIT" doc:"HIT: the first answer to this key, again"`
	State  MessageStatus `json:"state,omitempty" enum:"queued,sending,sent,failed,suppressed,dead" doc:"With HIT, what has become of the message that used the key first"`
}

// SubmitAnswer is the response to a SubmitRequest. With DryRun it has Preview and no queue id. For a mail
// merge it has MailMerge and, if the whole request has a key, Idempotency.
type SubmitAnswer struct {
	Response    string             `json:"response,omitempty" example:"Queued for delivery"`
	MessageID   string             `json:"messageId,omitempty"`
	SendAt      *time.Time         `json:"sendAt,omitempty"`
	QueueID     string             `json:"queueId,omitempty"`
	Preview     []byte             `json:"preview,omitempty" doc:"The message, in base64 (dryRun only)"`
	Idempotency *IdempotencyStatus `json:"idempotency,omitempty"`
	Skipped     *Skipped           `json:"skipped,omitempty" doc:"Recipients that are not mailed"`
	MailMerge   []MailMergeResult  `json:"mailMerge,omitempty" doc:"The result of each entry, in order"`
}

// Skipped is the recipients that are not mailed, and the reason.
type Skipped struct {
	Reason     string   `json:"reason" enum:"unsubscribe,hard_bounce,spam_report,manual,erased" doc:"Why the first of them is not"`
	ListID     string   `json:"listId,omitempty" doc:"The list that says so; absent: the account, or the instance"`
	Recipients []string `json:"recipients"`
	All        bool     `json:"all,omitempty" doc:"Nothing was queued: these are all recipients. The queueId is that of the entry in the email log"`
}

// NoneQueued reports whether nothing was queued, because all recipients are suppressed.
func (a SubmitAnswer) NoneQueued() bool { return a.Skipped != nil && a.Skipped.All }

// MailMergeResult is the result of one entry of a mail merge.
type MailMergeResult struct {
	Success     bool               `json:"success"`
	To          Address            `json:"to"`
	MessageID   string             `json:"messageId,omitempty"`
	QueueID     string             `json:"queueId,omitempty"`
	SendAt      *time.Time         `json:"sendAt,omitempty"`
	Idempotency *IdempotencyStatus `json:"idempotency,omitempty"`
	Preview     []byte             `json:"preview,omitempty" doc:"The message, in base64 (dryRun only, the first ten)"`
	Skipped     *Skipped           `json:"skipped,omitempty" doc:"Why this entry's recipient is not mailed; nothing was queued"`
	Error       string             `json:"error,omitempty" doc:"Why this entry was not queued"`
	Code        string             `json:"code,omitempty"`
	StatusCode  int                `json:"statusCode,omitempty" doc:"The status that this message alone would have been answered with"`
	Fields      []ProblemField     `json:"fields,omitempty" doc:"Every wrong field of the entry"`
}

// TemplateRef names the template a message was made from.
type TemplateRef struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
}
