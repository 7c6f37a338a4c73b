package outbox

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// DeadLetters answers a page of the messages that failed for good, oldest first. The query's state is of no
// account.
func (rd *Reader) DeadLetters(ctx context.Context, q api.OutboxQuery) (api.DeadLetterPage, error) {
	q.State = api.Failed
	page, err := rd.List(ctx, q)
	return api.DeadLetterPage{Total: page.Total, Page: page.Page, Pages: page.Pages, Cursor: page.Cursor,
		DeadLetters: page.Messages}, err
}

// DeadLetter answers a message that failed for good: why, every attempt, and its content.
func (rd *Reader) DeadLetter(ctx context.Context, id string) (api.DeadLetter, error) {
	r, err := rd.read(ctx, id)
	if err != nil {
		return api.DeadLetter{}, err
	}
	if r.state != stateFailed {
		return api.DeadLetter{}, noDeadLetter(id)
	}
	content, err := rd.contentOf(ctx, r)
	m := r.show(false)
	m.Log = r.status.Log
	return api.DeadLetter{OutboxMessage: m, Content: content}, err
}

func noDeadLetter(id string) error {
	return fault.New(fault.NotFound, "DeadLetterNotFound", "No dead letter with id %q", id)
}
