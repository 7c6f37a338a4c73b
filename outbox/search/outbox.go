package search

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox"
)

// Outbox reads messages for the index. It is outbox.Outbox; tests replace it to make it fail.
type Outbox interface {
	// Documents reads messages; forgotten ones are missing.
	Documents(ctx context.Context, ids []string) ([]outbox.Document, error)
	// Indexed reports that the texts of messages are in the index, so the outbox may drop them.
	Indexed(ctx context.Context, ids []string) error
	// Messages returns a page of the log, newest message first.
	Messages(ctx context.Context, q api.LogQuery) (api.LogPage, error)
}
