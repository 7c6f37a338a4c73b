package documents

import (
	"context"

	"github.com/postroom/postroom/api"
)

// Outbox tells what became of messages. Package app makes one of outbox.Outbox.
type Outbox interface {
	// Documents reads messages; those that are no longer remembered are missing.
	Documents(ctx context.Context, ids []string) ([]Message, error)
	// Indexed tells that the texts of messages are in the index, and need be kept for it no longer.
	Indexed(ctx context.Context, ids []string) error
	// Messages answers a page of the log, newest message first.
	Messages(ctx context.Context, q api.LogQuery) (api.LogPage, error)
}

// Message is a message as the outbox tells it.
type Message struct {
	api.LoggedMessage
	Text      string // what people read of it, without markup
	TextKnown bool   // false: its content is gone
}
