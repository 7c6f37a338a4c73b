package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// DeadLetters answers a page of the messages that failed for good, oldest first. The query's state is of no account.
func (b *Outbox) DeadLetters(ctx context.Context, q api.OutboxQuery) (api.DeadLetterPage, error) {
	q.State = api.Failed
	page, err := b.List(ctx, q)
	return api.DeadLetterPage{Total: page.Total, Page: page.Page, Pages: page.Pages, Cursor: page.Cursor, DeadLetters: page.Messages}, err
}

// DeadLetter answers a message that failed for good: why, every attempt, and its content.
func (b *Outbox) DeadLetter(ctx context.Context, id string) (api.DeadLetter, error) {
	r, err := b.read(ctx, id)
	if err != nil {
		return api.DeadLetter{}, err
	}
	if r.state != stateFailed {
		return api.DeadLetter{}, noDeadLetter(id)
	}
	content, err := b.contentOf(ctx, r)
	m := r.show(false)
	m.Log = r.status.Log
	return api.DeadLetter{OutboxMessage: m, Content: content}, err
}

// Replay queues a dead letter again, for the recipients that failed or those that the corrections name instead, with its attempts counted
// anew. Its content goes out as it is: headers and signature tell of the former recipients and account. Of several replays at once one
// succeeds; the others find the message no longer dead, a Conflict. So is a message that failed and whose content is no longer kept.
func (b *Outbox) Replay(ctx context.Context, id string, c api.Corrections) (api.OutboxMessage, error) {
	k, err := b.correct(ctx, c)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	m, err := b.reopen(ctx, id, func(r row, now time.Time) (reopening, error) {
		if r.state != stateFailed {
			return reopening{}, fault.New(fault.Conflict, "MessageNotFailed", "Message %s has not failed; it is %s", id, r.state)
		}
		return k.plan(r, now), nil
	})
	if past, ok := errors.AsType[*fault.Error](err); ok && past.Code == "MessageFailed" {
		return m, fault.New(fault.Conflict, "ContentGone", "Message %s failed, and its content is no longer kept: it can't be sent again", id)
	}
	return m, err
}

// DeleteDeadLetter forgets a dead letter. An unknown one, or a message that has not failed, is not an error: nothing is deleted.
func (b *Outbox) DeleteDeadLetter(ctx context.Context, id string) (api.DeleteAnswer, error) {
	r, err := b.read(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && r.state != stateFailed {
		return api.DeleteAnswer{}, nil
	}
	if err != nil {
		return api.DeleteAnswer{}, err
	}
	return b.Cancel(ctx, id, ReasonAPI)
}

func noDeadLetter(id string) error {
	return fault.New(fault.NotFound, "DeadLetterNotFound", "No dead letter with id %q", id)
}
