package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/search"
)

type documentRoutes struct{ documents *search.Documents }

// searchDocuments searches all messages, or the account's that a token is bound to.
func (d documentRoutes) searchDocuments(ctx context.Context, in *api.DocumentQuery) (api.DocumentPage,
	error) {
	in.Account = boundTo(ctx)
	return d.documents.Search(ctx, *in)
}
