package api

import (
	"bytes"
	"encoding/json"
	"time"
)

// Address is a person or a mailbox: a display name and an address (RFC 5322 section 3.4).
type Address struct {
	Name    string `json:"name,omitempty" maxLength:"256" doc:"Display name"`
	Address string `json:"address" maxLength:"256" doc:"Email address"`
}

// Addresses is a list of addresses. In JSON a single object stands for a list of one.
type Addresses []Address

// UnmarshalJSON reads a list, a single object, or null.
func (a *Addresses) UnmarshalJSON(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '{' {
		var one Address
		if err := json.Unmarshal(raw, &one); err != nil {
			return err
		}
		*a = Addresses{one}
		return nil
	}
	var many []Address
	if err := json.Unmarshal(raw, &many); err != nil {
		return err
	}
	*a = many
	return nil
}

// Envelope is who the relay is told the message is from and for (RFC 5321), where that differs from the headers.
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

// SubmitRequest asks for one message to be sent.
type SubmitRequest struct {
	Account          string            `json:"account,omitempty" maxLength:"256" doc:"Account that sends; the default account when absent"`
	From             *Address          `json:"from,omitempty" doc:"The account's own name and address when absent"`
	To               Addresses         `json:"to,omitempty" maxItems:"10000"`
	CC               Addresses         `json:"cc,omitempty" maxItems:"10000"`
	BCC              Addresses         `json:"bcc,omitempty" maxItems:"10000" doc:"Never written into a header"`
	ReplyTo          Addresses         `json:"replyTo,omitempty" maxItems:"10000"`
	Subject          string            `json:"subject,omitempty" maxLength:"10240"`
	Text             string            `json:"text,omitempty"`
	HTML             string            `json:"html,omitempty" doc:"Without text, a text part is made from it; data: images become inline attachments"`
	PreviewText      string            `json:"previewText,omitempty" maxLength:"1024" doc:"What mail programs show beside the subject"`
	Raw              []byte            `json:"raw,omitempty" doc:"A whole RFC 5322 message in base64; excludes html, text and attachments"`
	Envelope         *Envelope         `json:"envelope,omitempty" doc:"Taken from the headers when absent"`
	Attachments      []Attachment      `json:"attachments,omitempty" maxItems:"1000"`
	Headers          map[string]string `json:"headers,omitempty" doc:"Added to the message"`
	MessageID        string            `json:"messageId,omitempty" maxLength:"996" doc:"Message-ID; made when absent"`
	InReplyTo        string            `json:"inReplyTo,omitempty" maxLength:"996" doc:"Message-ID this message answers"`
	References       []string          `json:"references,omitempty" maxItems:"100" doc:"Message-IDs of the thread, oldest first"`
	SendAt           *time.Time        `json:"sendAt,omitempty" doc:"When to send; now when absent or past"`
	DeliveryAttempts int               `json:"deliveryAttempts,omitempty" minimum:"1" maximum:"100" doc:"Attempts in all; the setting when absent"`
	RequireTLS       bool              `json:"requireTls,omitempty" doc:"Every server on the way must use verified TLS (REQUIRETLS, RFC 8689); fails when the relay does not offer that"`
	Gateway          string            `json:"gateway,omitempty" maxLength:"256" doc:"Gateway to send through; the account's own relay when absent"`
	DSN              *DSN              `json:"dsn,omitempty"`
	DryRun           bool              `json:"dryRun,omitempty" doc:"Build the message and return it, queue nothing"`
	IdempotencyKey   string            `json:"idempotencyKey,omitempty" maxLength:"1024" doc:"One key, one message; the same as the header Idempotency-Key"`
	Lane             Lane              `json:"lane,omitempty" enum:"transactional,bulk" doc:"bulk never delays transactional; transactional when absent"`
	Metadata         json.RawMessage   `json:"metadata,omitempty" doc:"An object of at most 4 KiB, echoed in every event of the message"`
	Tags             []string          `json:"tags,omitempty" maxItems:"10" doc:"For filtering"`
	DeliverBy        *time.Time        `json:"deliverBy,omitempty" doc:"Give up after this moment, whatever attempts remain"`
	Copy             *bool             `json:"copy,omitempty" doc:"Accepted for EmailEngine's clients; Postroom has no mailbox to copy to"`
	SentMailPath     string            `json:"sentMailPath,omitempty" doc:"Accepted for EmailEngine's clients; Postroom has no mailbox to copy to"`
	Reference        json.RawMessage   `json:"reference,omitempty" doc:"Refused: Postroom has no mailbox to take a stored message from; use inReplyTo and references"`
}

// Lane keeps bulk mail from delaying transactional mail.
type Lane string

// The lanes. The zero Lane means Transactional.
const (
	Transactional Lane = "transactional"
	Bulk          Lane = "bulk"
)

// IdempotencyStatus says whether a key was new.
type IdempotencyStatus struct {
	Key    string `json:"key"`
	Status string `json:"status" enum:"MISS,HIT" doc:"HIT: the first answer to this key, again"`
}

// SubmitAnswer is the answer to a SubmitRequest. With DryRun it carries Preview and no queue id.
type SubmitAnswer struct {
	Response    string             `json:"response" example:"Queued for delivery"`
	MessageID   string             `json:"messageId"`
	SendAt      *time.Time         `json:"sendAt,omitempty"`
	QueueID     string             `json:"queueId,omitempty"`
	Preview     []byte             `json:"preview,omitempty" doc:"The message, in base64 (dryRun only)"`
	Idempotency *IdempotencyStatus `json:"idempotency,omitempty"`
}
