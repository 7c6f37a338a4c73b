package server

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox"
)

// pageInput is the part of the query that lists share.
type pageInput struct {
	Page     int `query:"page" minimum:"0" doc:"Page, from 0"`
	PageSize int `query:"pageSize" minimum:"1" maximum:"1000" doc:"Rows a page; 20 when absent"`
}

// size returns the number of rows of a page.
func (p pageInput) size() int {
	if p.PageSize == 0 {
		return 20
	}
	return p.PageSize
}

// selection are the filters of messages.
type selection struct {
	State         string    `query:"state" enum:"waiting,active,scheduled,delayed,paused,failed,completed" doc:"Only messages in this state; delayed: the scheduled ones, too; completed: as many as queueKeep keeps"`
	Account       string    `query:"account" maxLength:"256" doc:"Only messages of this account"`
	Lane          string    `query:"lane" enum:"transactional,bulk" doc:"Only messages in this lane"`
	Tag           string    `query:"tag" maxLength:"256" doc:"Only messages with this tag"`
	Search        string    `query:"search" maxLength:"256" doc:"Only messages with this in an address or the subject; case does not matter"`
	CreatedAfter  time.Time `query:"createdAfter" doc:"Only messages accepted at this time or later"`
	CreatedBefore time.Time `query:"createdBefore" doc:"Only messages accepted before this time"`
}

// ownAccount returns the account to search, given the one that the caller asked for; empty: all. For a bound
// token that is its own account, and any other is refused.
func ownAccount(ctx context.Context, asked string) (string, error) {
	bound := boundTo(ctx)
	switch {
	case bound == "" || asked == bound:
		return asked, nil
	case asked != "":
		return "", fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	return bound, nil
}

// query returns the selection as the outbox has it, restricted to what the caller may see.
func (q selection) query(ctx context.Context) (api.OutboxQuery, error) {
	account, err := ownAccount(ctx, q.Account)
	if err != nil {
		return api.OutboxQuery{}, err
	}
	return api.OutboxQuery{
		State: api.State(q.State), Account: account, Lane: api.Lane(q.Lane), Tag: q.Tag, Search: q.Search,
		CreatedAfter: q.CreatedAfter, CreatedBefore: q.CreatedBefore,
	}, nil
}

// messageRoutes show and change messages: those in the outbox, the email log, and dead letters.
type messageRoutes struct{ box *outbox.Outbox }

type listOutboxInput struct {
	pageInput
	selection
	Cursor string `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the rows after it; page is ignored"`
}

func (m messageRoutes) listOutbox(ctx context.Context, in *listOutboxInput) (api.OutboxPage, error) {
	q, err := in.query(ctx)
	if err != nil {
		return api.OutboxPage{}, err
	}
	q.Page, q.PageSize, q.Cursor = in.Page, in.size(), in.Cursor
	return m.box.Reader.List(ctx, q)
}

// cancelAll demands a filter: a client that omits the id by mistake must not empty the outbox.
func (m messageRoutes) cancelAll(ctx context.Context, in *selection) (api.BulkDeleteAnswer, error) {
	if *in == (selection{}) {
		return api.BulkDeleteAnswer{}, invalid("state", "or another filter is required")
	}
	q, err := in.query(ctx)
	if err != nil {
		return api.BulkDeleteAnswer{}, err
	}
	return m.box.Operations.CancelAll(ctx, q, "api")
}

type messageInput struct {
	QueueID string `path:"queueId" maxLength:"256" doc:"Id from the answer of the submit"`
}

// mine returns notFound to a bound token for a message of another account, as for one that does not exist.
func (m messageRoutes) mine(ctx context.Context, id string) error {
	bound := boundTo(ctx)
	if bound == "" {
		return nil
	}
	account, err := m.box.Reader.AccountOf(ctx, id)
	if err != nil {
		return err
	}
	if account != bound {
		return notFound()
	}
	return nil
}

func notFound() error {
	return fault.New(fault.NotFound, "", "Requested queue entry was not found")
}

func (m messageRoutes) getMessage(ctx context.Context, in *messageInput) (api.OutboxMessage, error) {
	if err := m.mine(ctx, in.QueueID); err != nil {
		return api.OutboxMessage{}, err
	}
	return m.box.Reader.Get(ctx, in.QueueID)
}

func (m messageRoutes) cancelMessage(ctx context.Context, in *messageInput) (api.DeleteAnswer, error) {
	if err := m.mine(ctx, in.QueueID); fault.Is(err, fault.NotFound) {
		return api.DeleteAnswer{}, nil // as for an unknown id
	} else if err != nil {
		return api.DeleteAnswer{}, err
	}
	return m.box.Operations.Cancel(ctx, in.QueueID, "api")
}

func (m messageRoutes) retryMessage(ctx context.Context, in *messageInput) (api.OutboxMessage, error) {
	if err := m.mine(ctx, in.QueueID); err != nil {
		return api.OutboxMessage{}, err
	}
	return m.box.Operations.Retry(ctx, in.QueueID)
}

type patchMessageInput struct {
	messageInput
	Body api.OutboxPatch
}

func (m messageRoutes) patchMessage(ctx context.Context, in *patchMessageInput) (api.OutboxMessage, error) {
	if err := m.mine(ctx, in.QueueID); err != nil {
		return api.OutboxMessage{}, err
	}
	in.Body.Bound = boundTo(ctx) != ""
	return m.box.Operations.Patch(ctx, in.QueueID, in.Body)
}

func (m messageRoutes) messageContent(ctx context.Context, in *messageInput) (file, error) {
	if err := m.mine(ctx, in.QueueID); err != nil {
		return file{}, err
	}
	content, err := m.box.Reader.Content(ctx, in.QueueID)
	return file{ContentType: "message/rfc822", Name: "message.eml", Content: content}, err
}
