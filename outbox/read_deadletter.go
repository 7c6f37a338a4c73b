package outbox

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// DeadLetters returns a page of the dead letters, oldest first. The query's state is ignored.
func (rd *Reader) DeadLetters(ctx context.Context, q api.OutboxQuery) (api.DeadLetterPage, error) {
	q.State = api.Failed
	page, err := rd.List(ctx, q)
	return api.DeadLetterPage{Total: page.Total, Page: page.Page, Pages: page.Pages, Cursor: page.Cursor,
		DeadLetters: page.Messages}, err
}

// DeadLetter returns a message that failed for good, with every attempt and its content.
func (rd *Reader) DeadLetter(ctx context.Context, id string) (api.DeadLetter, error) {
	r, err := rd.read(ctx, id)
	if err != nil {
		return api.DeadLetter{}, err
	}
	if r.state != stateFailed {
		return api.DeadLetter{}, fault.New(fault.NotFound, "DeadLetterNotFound", "No dead letter with id %q", id)
	}
	content, err := rd.contentOf(ctx, r)
	m := r.show(false)
	m.Log = r.status.Log
	return api.DeadLetter{OutboxMessage: m, Content: content}, err
}
