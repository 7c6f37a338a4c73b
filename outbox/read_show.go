package outbox

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// Reader shows messages: those in the outbox, those that failed, and the log of those that ended.
type Reader struct{ *store }

// Get answers a live message, with the log of its attempts. A message that was sent, cancelled or failed is
// gone: the fault says which, and where its dead letter is.
func (rd *Reader) Get(ctx context.Context, id string) (api.OutboxMessage, error) {
	r, err := rd.read(ctx, id)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	if r.state == stateFailed {
		return api.OutboxMessage{}, gone(r)
	}
	paused, err := rd.pausedLanes(ctx)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	m := r.show(paused[r.lane])
	m.Log = r.status.Log
	return m, nil
}

// Content answers the message itself, as it goes to the relay.
func (rd *Reader) Content(ctx context.Context, id string) ([]byte, error) {
	r, err := rd.read(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.state == stateFailed {
		return nil, gone(r)
	}
	return rd.contentOf(ctx, r)
}

// AccountOf answers the account of a message, also of one that ended, as long as that is remembered. Unknown:
// "".
func (rd *Reader) AccountOf(ctx context.Context, id string) (string, error) {
	p, ok := partitionOf(id, rd.DB.Partitions())
	if !ok {
		return "", nil
	}
	account, err := rd.DB.Client().HGet(ctx, rd.keys.message(p, id), "account").Result()
	if err == nil {
		return account, nil
	}
	if !errors.Is(err, redis.Nil) {
		return "", away(err, "read account of message "+id)
	}
	r, _, err := rd.trace(ctx, p, id)
	return r.envelope.Account, err
}

// read reads one live message, or says what became of it.
func (rd *Reader) read(ctx context.Context, id string) (row, error) {
	p, err := rd.place(id)
	if err != nil {
		return row{}, err
	}
	rows, err := rd.readRows(ctx, []entry{{id: id}})
	if err != nil {
		return row{}, away(err, "read message "+id)
	}
	if len(rows) == 1 {
		return rows[0], nil
	}
	past, known, err := rd.trace(ctx, p, id)
	switch {
	case err != nil:
		return row{}, err
	case !known:
		return row{}, unknownMessage(id)
	}
	return row{}, gone(past)
}

// gone is the answer about a message that is no longer in the outbox, and where to read on: a dead letter, or
// what the log has.
func gone(r row) error {
	var f *fault.Error
	switch r.state {
	case resultSent:
		f = fault.New(fault.NotFound, "MessageSent", "Message %s was sent", r.id)
	case resultFailed:
		f = fault.New(fault.NotFound, "MessageFailed", "Message %s failed for good", r.id)
	case resultSuppressed:
		f = fault.New(fault.NotFound, "MessageSuppressed",
			"Message %s was not sent: its recipients must not be mailed", r.id)
	default:
		f = fault.New(fault.NotFound, "MessageCancelled", "Message %s was cancelled", r.id)
	}
	f.Details = map[string]any{"message": "/v1/messages/" + r.id}
	if r.ended == 0 {
		f.Details["deadLetter"] = "/v1/dead-letters/" + r.id
		return f
	}
	f.Details["at"] = fromMillis(r.ended)
	if said := r.response(); said != "" {
		f.Details["response"] = said
	}
	return f
}

// response is the relay's last reply that took the message; empty while none did.
func (r row) response() string {
	said := ""
	for _, one := range r.status.Recipients {
		if one.Status == rcptSent {
			said = one.Response
		}
	}
	return said
}

// rows reads the messages of a page.
func (rd *Reader) rows(ctx context.Context, entries []entry, paused map[api.Lane]bool) ([]api.OutboxMessage,
	error) {
	rows, err := rd.readRows(ctx, entries)
	if err != nil {
		return nil, err
	}
	out := make([]api.OutboxMessage, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.show(paused[r.lane]))
	}
	return out, nil
}

// show puts a message in the words of the API.
func (r row) show(paused bool) api.OutboxMessage {
	m := api.OutboxMessage{
		QueueID: r.id, Account: r.envelope.Account, Source: r.envelope.Source, MessageID: r.envelope.MessageID,
		Envelope: api.Envelope{From: r.envelope.From, To: r.envelope.To}, Subject: r.envelope.Subject,
		Created: fromMillis(r.created), Scheduled: fromMillis(r.planned), AttemptsMade: r.attempts, Attempts: r.max,
		State: shown(r.state, paused), Recipients: r.recipients(), IdempotencyKey: r.envelope.Key, Lane: r.lane,
		Tags:     r.envelope.Tags,
		Metadata: r.envelope.Metadata, InDoubt: max(r.doubts, r.status.doubtful()), DeliverBy: r.envelope.DeliverBy,
		Progress: r.progress(), Reason: r.reason,
		Template: r.envelope.Template,
	}
	if r.gateway != "" {
		m.Gateway = &r.gateway
	}
	if r.state != stateFailed && r.ended == 0 {
		due := fromMillis(r.due)
		m.NextAttempt.Time = &due
	}
	return m
}

func (r row) progress() api.Progress {
	switch {
	case r.state == stateActive:
		return api.Progress{Status: "processing"}
	case r.status.Last != nil:
		return api.Progress{Status: "error", Error: r.fault()}
	}
	return api.Progress{Status: "queued"}
}

// fault is what the last attempt failed with; nil when it did not, or none was made.
func (r row) fault() *api.DeliveryFault {
	last := r.status.Last
	if last == nil {
		return nil
	}
	f := &api.DeliveryFault{Message: last.Message, Code: last.Code, AccountTrouble: last.Account}
	if last.SMTP != 0 {
		f.StatusCode = &last.SMTP
	}
	return f
}

func (r row) recipients() []api.RecipientStatus {
	out := make([]api.RecipientStatus, len(r.envelope.To))
	for i, to := range r.envelope.To {
		s := r.status.Recipients[i]
		out[i] = api.RecipientStatus{Address: to, Status: s.Status, Response: s.Response, Attempts: s.Attempts}
	}
	return out
}
