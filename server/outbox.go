package server

import (
	"cmp"
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox"
)

func pageSize(q api.PageQuery) int { return cmp.Or(q.PageSize, 20) }

// ownAccount returns the account to search, given the one that the caller asked for; empty means all. For a
// bound token that is its own account, and any other is refused.
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

// messageRoutes show and change messages: those in the outbox, the email log, and dead letters.
type messageRoutes struct{ box *outbox.Outbox }

func (m messageRoutes) listOutbox(ctx context.Context, in *api.OutboxQuery) (_ api.OutboxPage, err error) {
	if in.Account, err = ownAccount(ctx, in.Account); err != nil {
		return api.OutboxPage{}, err
	}
	return m.box.Reader.List(ctx, *in)
}

// cancelAll demands a filter: a client that omits the id by mistake must not empty the outbox.
func (m messageRoutes) cancelAll(ctx context.Context, in *api.OutboxQuery) (api.BulkDeleteAnswer, error) {
	if *in == (api.OutboxQuery{}) {
		return api.BulkDeleteAnswer{}, invalid("state", "or another filter is required")
	}
	q, err := *in, error(nil)
	if q.Account, err = ownAccount(ctx, in.Account); err != nil {
		return api.BulkDeleteAnswer{}, err
	}
	return m.box.Operations.CancelAll(ctx, q, "api")
}

type messageInput struct {
	QueueID string `path:"queueId" maxLength:"256" doc:"ID from the submit response"`
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

// ofMine returns a handler that passes the id of a message to ask. To a bound token, the messages of other
// accounts don't exist.
func ofMine[O any](m messageRoutes, ask func(context.Context, string) (O, error)) handler[messageInput, O] {
	return func(ctx context.Context, in *messageInput) (out O, err error) {
		if err := m.mine(ctx, in.QueueID); err != nil {
			return out, err
		}
		return ask(ctx, in.QueueID)
	}
}

func (m messageRoutes) cancelMessage(ctx context.Context, in *messageInput) (api.DeleteAnswer, error) {
	if err := m.mine(ctx, in.QueueID); fault.Is(err, fault.NotFound) {
		return api.DeleteAnswer{}, nil // as for an unknown id
	} else if err != nil {
		return api.DeleteAnswer{}, err
	}
	return m.box.Operations.Cancel(ctx, in.QueueID, "api")
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
