package api

import (
	"context"
	"iter"
	"net/http"
	"net/url"
)

// Messages lists the email log, newest message first: what is queued, and what is remembered of what ended.
func (c *Client) Messages(ctx context.Context, q LogQuery) (page LogPage, err error) {
	return page, c.do(ctx, call{method: http.MethodGet, path: "/v1/messages", query: q.values(), out: &page})
}

// AllMessages walks over all messages of the log that match, from the query's page on, fetching page after page. It ends at the first error.
func (c *Client) AllMessages(ctx context.Context, q LogQuery) iter.Seq2[LoggedMessage, error] {
	return func(yield func(LoggedMessage, error) bool) {
		for {
			page, err := c.Messages(ctx, q)
			if err != nil {
				yield(LoggedMessage{}, err)
				return
			}
			for _, m := range page.Messages {
				if !yield(m, nil) {
					return
				}
			}
			if page.Cursor == "" {
				return
			}
			q.Page, q.Cursor = 0, page.Cursor
		}
	}
}

// LoggedMessage shows a message of the email log with all of its attempts, whether it has ended or not. Message is about queued ones only.
func (c *Client) LoggedMessage(ctx context.Context, queueID string) (m LoggedMessage, err error) {
	return m, c.do(ctx, call{method: http.MethodGet, path: at("v1", "messages", queueID), out: &m})
}

// MessageEvents tells what happened to a message, oldest event first.
func (c *Client) MessageEvents(ctx context.Context, queueID string) (e MessageEvents, err error) {
	return e, c.do(ctx, call{method: http.MethodGet, path: at("v1", "messages", queueID, "events"), out: &e})
}

// values writes a query as a URL has it: that of the outbox, with a status in place of the state.
func (q LogQuery) values() url.Values {
	v := OutboxQuery{
		Page: q.Page, PageSize: q.PageSize, Cursor: q.Cursor, Account: q.Account, Lane: q.Lane, Tag: q.Tag, Search: q.Search,
		CreatedAfter: q.CreatedAfter, CreatedBefore: q.CreatedBefore,
	}.values()
	if q.Status != "" {
		v.Set("status", string(q.Status))
	}
	return v
}

// values writes a query as a URL has it.
func (q CounterQuery) values() url.Values {
	return OutboxQuery{Account: q.Account, Lane: q.Lane}.values()
}
