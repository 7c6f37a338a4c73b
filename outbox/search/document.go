package search

import (
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox"
)

// Document is the data of one message in the index.
type Document struct {
	QueueID   string            `json:"queueId"`
	Account   string            `json:"account"`
	MessageID string            `json:"messageId,omitempty"`
	Key       string            `json:"key,omitempty"` // idempotency key
	Subject   string            `json:"subject"`
	From      string            `json:"from"`
	To        []string          `json:"to"`
	Status    api.MessageStatus `json:"status"`
	Outcome   api.MessageStatus `json:"outcome,omitempty"` // if it is a bad one, or the recipient left
	Lane      api.Lane          `json:"lane"`
	Tags      []string          `json:"tags,omitempty"`
	Gateway   string            `json:"gateway,omitempty"`
	Code      string            `json:"code,omitempty"`     // name of the last error, such as EENVELOPE
	SMTPCode  int               `json:"smtpCode,omitempty"` // the last error's; zero if there was no SMTP reply
	Created   time.Time         `json:"created"`
	Ended     *time.Time        `json:"ended,omitempty"`
	Text      string            `json:"text,omitempty"` // the beginning of the message's readable text
	TextKnown bool              `json:"textKnown"`      // if false, the index keeps its text
	Revision  int64             `json:"revision"`       // a document never replaces one with a higher revision
}

// Complete adds the texts of an index to documents without a known text. stored returns the documents that
// the index has, by queue id.
func Complete(docs []Document, stored func([]Document) (map[string]Document, error)) ([]Document, error) {
	unknown := slices.DeleteFunc(slices.Clone(docs), func(d Document) bool { return d.TextKnown })
	if len(unknown) == 0 {
		return docs, nil
	}
	texts, err := stored(unknown)
	if err != nil {
		return nil, err
	}
	docs = slices.Clone(docs)
	for i, d := range docs {
		if old, ok := texts[d.QueueID]; ok && !d.TextKnown {
			docs[i].Text, docs[i].TextKnown = old.Text, old.TextKnown
		}
	}
	return docs, nil
}

// indexedOutcome reports whether an outcome is in the index. Deliveries, opens and clicks are not: each would
// have its message indexed again.
func indexedOutcome(s api.MessageStatus) bool { return s.IsBad() || s == api.OutcomeUnsubscribed }

// documentOf returns the document of a message, with at most maxText bytes of text.
func documentOf(m outbox.Document, maxText int, revision int64) Document {
	d := Document{
		QueueID: m.QueueID, Account: m.Account, MessageID: m.MessageID, Key: m.IdempotencyKey, Subject: m.Subject,
		From: m.Envelope.From,
		To:   m.Envelope.To, Status: m.Status, Lane: m.Lane, Tags: m.Tags,
		Created: m.Created.UTC().Truncate(time.Millisecond), Ended: m.Ended,
		TextKnown: m.TextKnown, Revision: revision,
	}
	if m.Outcome != nil && indexedOutcome(m.Outcome.Status) {
		d.Outcome = m.Outcome.Status
	}
	if m.Gateway != nil {
		d.Gateway = *m.Gateway
	}
	if m.Error != nil {
		d.Code = m.Error.Code
		if m.Error.StatusCode != nil {
			d.SMTPCode = *m.Error.StatusCode
		}
	}
	if m.TextKnown {
		d.Text = excerpt(m.Text, maxText)
	}
	return d
}
