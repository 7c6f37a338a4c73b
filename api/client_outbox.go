package api

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Submit queues a message for delivery. Once it returns without error, the message is durable.
func (c *Client) Submit(ctx context.Context, req SubmitRequest) (answer SubmitAnswer, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: "/v1/submit", in: req, out: &answer})
}

// Outbox lists queued messages, oldest first.
func (c *Client) Outbox(ctx context.Context, q OutboxQuery) (page OutboxPage, err error) {
	return page, c.do(ctx, call{method: http.MethodGet, path: "/v1/outbox", query: q.values(), out: &page})
}

// AllOutbox walks over all messages that match, from the query's page on, fetching page after page. It ends at the first error.
func (c *Client) AllOutbox(ctx context.Context, q OutboxQuery) iter.Seq2[OutboxMessage, error] {
	return func(yield func(OutboxMessage, error) bool) {
		for {
			page, err := c.Outbox(ctx, q)
			if err != nil {
				yield(OutboxMessage{}, err)
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

// Message shows a queued message. One that has ended is a *Failure with status 404, whose code says how it ended.
func (c *Client) Message(ctx context.Context, queueID string) (m OutboxMessage, err error) {
	return m, c.do(ctx, call{method: http.MethodGet, path: at("v1", "outbox", queueID), out: &m})
}

// Content downloads a queued message as it will be sent, in the form of RFC 5322.
func (c *Client) Content(ctx context.Context, queueID string) (raw []byte, err error) {
	return raw, c.do(ctx, call{method: http.MethodGet, path: at("v1", "outbox", queueID, "content"), out: &raw})
}

// Cancel takes a queued message back. The answer says whether that was still possible.
func (c *Client) Cancel(ctx context.Context, queueID string) (answer DeleteAnswer, err error) {
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "outbox", queueID), out: &answer})
}

// CancelAll takes back all queued messages that match, whatever the query's page. A query that selects nothing in particular is refused.
func (c *Client) CancelAll(ctx context.Context, q OutboxQuery) (answer BulkDeleteAnswer, err error) {
	q.Page, q.PageSize, q.Cursor = 0, 0, ""
	return answer, c.do(ctx, call{method: http.MethodDelete, path: "/v1/outbox", query: q.values(), out: &answer})
}

// Retry attempts delivery of a queued message now.
func (c *Client) Retry(ctx context.Context, queueID string) (m OutboxMessage, err error) {
	return m, c.do(ctx, call{method: http.MethodPost, path: at("v1", "outbox", queueID, "retry"), out: &m})
}

// Patch changes when and how a queued message is sent.
func (c *Client) Patch(ctx context.Context, queueID string, p OutboxPatch) (m OutboxMessage, err error) {
	return m, c.do(ctx, call{method: http.MethodPatch, path: at("v1", "outbox", queueID), in: p, out: &m})
}

// DeadLetters lists the messages that failed for good, oldest first. The query's state is of no account.
func (c *Client) DeadLetters(ctx context.Context, q OutboxQuery) (page DeadLetterPage, err error) {
	q.State = ""
	return page, c.do(ctx, call{method: http.MethodGet, path: "/v1/dead-letters", query: q.values(), out: &page})
}

// DeadLetter shows a message that failed for good, with its content.
func (c *Client) DeadLetter(ctx context.Context, queueID string) (d DeadLetter, err error) {
	return d, c.do(ctx, call{method: http.MethodGet, path: at("v1", "dead-letters", queueID), out: &d})
}

// Replay queues a dead letter again, for the recipients that failed, or as corrected. The zero Corrections change nothing.
func (c *Client) Replay(ctx context.Context, queueID string, corrections Corrections) (m OutboxMessage, err error) {
	return m, c.do(ctx, call{method: http.MethodPost, path: at("v1", "dead-letters", queueID, "replay"), in: corrections, out: &m})
}

// ReplayAll queues all dead letters again that the request selects.
func (c *Client) ReplayAll(ctx context.Context, req ReplayRequest) (answer ReplayAnswer, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: "/v1/dead-letters/replay", in: req, out: &answer})
}

// DeleteDeadLetter forgets a dead letter and its content.
func (c *Client) DeleteDeadLetter(ctx context.Context, queueID string) (answer DeleteAnswer, err error) {
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "dead-letters", queueID), out: &answer})
}

// values writes a query as a URL has it.
func (q OutboxQuery) values() url.Values {
	v := pageQuery(q.Page, q.PageSize)
	set := func(key, value string) {
		if value != "" {
			v.Set(key, value)
		}
	}
	set("cursor", q.Cursor)
	set("state", string(q.State))
	set("account", q.Account)
	set("lane", string(q.Lane))
	set("tag", q.Tag)
	set("search", q.Search)
	if !q.CreatedAfter.IsZero() {
		set("createdAfter", q.CreatedAfter.UTC().Format(time.RFC3339Nano))
	}
	if !q.CreatedBefore.IsZero() {
		set("createdBefore", q.CreatedBefore.UTC().Format(time.RFC3339Nano))
	}
	return v
}
