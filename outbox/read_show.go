package outbox

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/smtpsend/replies"
)

// Reader shows messages: live messages, dead letters, and the log of ended messages.
type Reader struct {
	*store
	within time.Duration // after which a search ends with what it found; 0 for no limit
}

// Within returns a reader for callers that wait. If a list with a tag or a search must read the messages
// themselves, it reads until the page is full or the time is over. The total counts the messages read. The
// cursor continues.
func (rd *Reader) Within(d time.Duration) *Reader { return &Reader{store: rd.store, within: d} }

// Get returns a live message with its attempts. It returns NotFound if the message was sent, cancelled or
// failed; the error says which, and where to find it.
func (rd *Reader) Get(ctx context.Context, id string) (api.OutboxMessage, error) {
	r, err := rd.read(ctx, id)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	if r.state == stateFailed {
		return api.OutboxMessage{}, gone(r)
	}
	return rd.shown(ctx, r)
}

// shown returns a message in the types of the API, with the log of its attempts.
func (rd *Reader) shown(ctx context.Context, r row) (api.OutboxMessage, error) {
	paused, err := rd.pausedQueues(ctx)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	m := r.show(paused[r.task().queue])
	m.Log, err = loggedAttempts(ctx, rd.store, r)
	return m, err
}

// Content returns the content of a live message, as it is sent to the relay.
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

// AccountOf returns the account of a message, live or in the log; "" if there is no such message.
func (rd *Reader) AccountOf(ctx context.Context, id string) (string, error) {
	r, err := rd.readLogged(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return r.envelope.Account, err
}

// read reads a live message. If the message ended, the error says how.
func (rd *Reader) read(ctx context.Context, id string) (row, error) {
	r, err := rd.readLogged(ctx, id)
	if err == nil && r.ended != 0 {
		return row{}, gone(r)
	}
	return r, err
}

// gone returns the error for a message that is no longer in the outbox. It says where the dead letter or the
// log entry is.
func gone(r row) error {
	var f *fault.Error
	switch r.state {
	case resultSent:
		f = fault.New(fault.NotFound, "MessageSent", "Message %s was sent", r.id)
	case resultFailed:
		f = fault.New(fault.NotFound, "MessageFailed", "Message %s failed permanently", r.id)
	case resultSuppressed:
		f = fault.New(fault.NotFound, "MessageSuppressed",
			"Message %s was not sent, because its recipients are suppressed", r.id)
	default:
		f = fault.New(fault.NotFound, "MessageCancelled", "Message %s was cancelled", r.id)
	}
	f.Details = map[string]any{"message": "/v1/messages/" + r.id}
	if r.ended == 0 {
		f.Details["deadLetter"] = "/v1/dead-letters/" + r.id
		return f
	}
	f.Details["at"] = redisdb.Time(r.ended)
	if said := r.response(); said != "" {
		f.Details["response"] = said
	}
	return f
}

// response is the last reply of a relay that accepted the message; "" if none did.
func (r row) response() string {
	said := ""
	for _, one := range r.status.Recipients {
		if one.Status == rcptSent {
			said = one.Response
		}
	}
	return said
}

// show returns a message in the types of the API. paused is whether its queue is.
func (r row) show(paused bool) api.OutboxMessage {
	m := api.OutboxMessage{
		QueueID: r.id, Account: r.envelope.Account, Source: r.envelope.Source, MessageID: r.envelope.MessageID,
		Envelope: api.Envelope{From: r.envelope.From, To: r.envelope.To}, Subject: r.envelope.Subject,
		Created: redisdb.Time(r.created), Scheduled: redisdb.Time(r.planned), AttemptsMade: r.attempts,
		Attempts: r.max, State: shown(r.state, paused), Recipients: r.recipients(), IdempotencyKey: r.envelope.Key,
		Lane: r.lane, Priority: r.envelope.Priority, Tags: r.envelope.Tags, Metadata: r.envelope.Metadata,
		DeliverBy: r.envelope.DeliverBy,
		InDoubt:   max(r.doubts, r.status.doubtful()), Progress: r.progress(), Reason: r.reason,
		Template: r.envelope.Template, TraceID: telemetry.ID(r.envelope.Trace),
	}
	if r.gateway != "" {
		m.Gateway = &r.gateway
	}
	if r.envelope.Added > 0 {
		m.Header = map[bool]string{true: "corrected", false: "unchanged"}[r.corrected()]
	}
	if r.state != stateFailed && r.ended == 0 {
		due := redisdb.Time(r.due)
		m.NextAttempt.Time = &due
	}
	return m
}

func (r row) progress() api.Progress {
	switch {
	case r.state == stateActive:
		return api.Progress{Status: "processing"}
	case r.state == resultSent:
		return api.Progress{Status: "submitted", Response: r.response()}
	case r.status.fault(r.state) != nil:
		return api.Progress{Status: "error", Error: r.fault()}
	}
	return api.Progress{Status: "queued"}
}

// fault returns the message's error, or nil. See status.fault.
func (r row) fault() *api.DeliveryFault {
	last := r.status.fault(r.state)
	if last == nil {
		return nil
	}
	f := &api.DeliveryFault{Message: last.Message, Code: last.Code, AccountTrouble: last.Account}
	if last.SMTP != 0 {
		f.StatusCode = &last.SMTP
	}
	f.Explanation = new(last.explained())
	return f
}

// explained says what the error means.
func (e *lastError) explained() api.Explanation {
	if e == nil {
		return replies.Of(replies.Reply{})
	}
	return replies.Of(replies.Reply{Code: e.SMTP, Text: e.Message, Error: e.Code})
}

// failedFor returns the reason in the explanation of the message's error.
func (r row) failedFor() string { return r.status.fault(r.state).explained().Reason }

func (r row) recipients() []api.RecipientStatus {
	out := make([]api.RecipientStatus, len(r.envelope.To))
	for i, to := range r.envelope.To {
		s := r.status.Recipients[i]
		out[i] = api.RecipientStatus{Address: to, Status: s.Status, Response: s.Response, Attempts: s.Attempts,
			ProviderMessageID: s.ID}
	}
	return out
}

// DeadLetters returns a page of the dead letters, oldest first. The query's state is ignored.
func (rd *Reader) DeadLetters(ctx context.Context, q api.OutboxQuery) (api.DeadLetterPage, error) {
	if q.State = api.Failed; rd.opts.KeepDeadLetters < 0 {
		return api.DeadLetterPage{DeadLetters: []api.OutboxMessage{}}, nil
	}
	page, err := rd.List(ctx, q)
	return api.DeadLetterPage{PageNumbers: page.PageNumbers, Cursor: page.Cursor,
		DeadLetters: page.Messages}, err
}

// DeadLetter returns a permanently failed message, with every attempt and its content.
func (rd *Reader) DeadLetter(ctx context.Context, id string) (api.DeadLetter, error) {
	r, err := rd.read(ctx, id)
	if err != nil {
		return api.DeadLetter{}, err
	}
	if r.state != stateFailed {
		return api.DeadLetter{}, fault.New(fault.NotFound, "DeadLetterNotFound", "There is no dead letter "+
			"with ID %q", id)
	}
	content, err := rd.contentOf(ctx, r)
	m := r.show(false)
	if err == nil {
		m.Log, err = loggedAttempts(ctx, rd.store, r)
	}
	return api.DeadLetter{OutboxMessage: m, Content: content}, err
}

// ContentNotKept is the code of Mail's error for a message whose log entry has no content. The error's text
// says why.
const ContentNotKept = "ContentNotKept"

// Mail returns a message as it is sent to the relay, while its content is stored: a live message, a dead
// letter, or one sent within Options.KeepContent. After that it returns NotFound.
func (rd *Reader) Mail(ctx context.Context, id string) ([]byte, error) {
	r, err := rd.readLogged(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.ended == 0 {
		return rd.contentOf(ctx, r)
	}
	until, err := contentUntil(ctx, rd.store, r)
	if err != nil {
		return nil, err
	}
	if until == nil {
		return nil, notKept(r, rd.opts)
	}
	raw, err := rd.contentOf(ctx, r)
	switch {
	case fault.CodeOf(err) == "AccountNotFound":
		return nil, fault.New(fault.NotFound, ContentNotKept,
			"The content can't be shown, because the message's account was deleted")
	case fault.Is(err, fault.NotFound), fault.CodeOf(err) == contentGone: // its time ended just now
		return nil, notKept(r, rd.opts)
	}
	return raw, err
}

// contentUntil returns when the content of an ended message expires, to the second; nil if it is not kept.
func contentUntil(ctx context.Context, s *store, r row) (*time.Time, error) {
	if r.ended == 0 || r.state != resultSent {
		return nil, nil
	}
	if err := s.clock.ready(ctx, s.DB.Client()); err != nil {
		return nil, redisError(err, "read message "+r.id)
	}
	pipe := s.DB.Client().Pipeline()
	own := pipe.PTTL(ctx, s.keys.content(r.partition, r.id))
	var shared *redis.IntCmd
	if r.shared != "" {
		shared = pipe.Exists(ctx, s.keys.shared(r.partition, r.shared))
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, redisError(err, "read until when the content of message "+r.id+" is kept")
	}
	// without a time to live it stays for the search index alone
	if own.Val() <= 0 || shared != nil && shared.Val() == 0 {
		return nil, nil
	}
	return new(s.clock.Now().Add(own.Val()).Round(time.Second).UTC()), nil
}

// notKept returns the error for an ended message whose content is not stored.
func notKept(r row, o Options) error {
	why := "The content of a message is not kept after sending (outbox.keepContent)"
	switch {
	case r.state == resultCancelled:
		why = "The content of a message that was cancelled is not kept"
	case r.state != resultSent:
		why = "The content of a message that was not sent is not kept after its end"
	case o.KeepContent > 0:
		why = "The content of this message is not kept any more: its time after sending is over " +
			"(outbox.keepContent), or it was deleted before"
	}
	return fault.New(fault.NotFound, ContentNotKept, "%s", why)
}

// Accepted returns the id of the message that was accepted under an account's idempotency key. It is empty if
// there was none, if none of its recipients could be sent to, or if the key is forgotten.
func (rd *Reader) Accepted(ctx context.Context, account, key string) (id string, _ error) {
	found, err := rd.DB.Client().Get(ctx, rd.keys.ofRequest(account, key, rd.DB.Partitions())).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", redisError(err, "read an idempotency key")
	}
	parts := strings.SplitN(found, " ", 3) // fingerprint, result and memo: see lua/prelude.lua
	if len(parts) < 3 {
		return "", nil
	}
	return acceptedIn(parts[2]), nil
}
