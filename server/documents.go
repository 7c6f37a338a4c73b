package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/search"
)

type searchInput struct {
	Q        string `query:"q" maxLength:"4096" doc:"The query, at most 1,000 characters: words, \"phrases\", -not, OR, prefix*, and fields, see docs/search.md. Empty: everything"`
	Page     int    `query:"page" minimum:"0" doc:"Page, from 0. Pages end at 10,000 messages; use cursor for more"`
	PageSize int    `query:"pageSize" minimum:"1" maximum:"500" doc:"Messages a page; 20 when absent"`
	Sort     string `query:"sort" enum:"newest,relevance" doc:"newest when absent; relevance: the best first"`
	Cursor   string `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the messages after it; page is ignored"`
}

type documentRoutes struct{ documents *search.Documents }

// searchDocuments searches all messages, or those of the account that a token is bound to.
func (d documentRoutes) searchDocuments(ctx context.Context, in *searchInput) (api.DocumentPage, error) {
	return d.documents.Search(ctx, api.DocumentQuery{
		Q: in.Q, Account: boundTo(ctx), Page: in.Page, PageSize: in.PageSize, Cursor: in.Cursor,
		Sort: api.DocumentSort(in.Sort),
	})
}

func (d documentRoutes) getDocuments(ctx context.Context, _ *noInput) (api.DocumentsState, error) {
	return d.documents.State(ctx)
}

func (d documentRoutes) rebuildDocuments(ctx context.Context, _ *noInput) (api.DocumentRebuild, error) {
	return d.documents.Rebuild(ctx)
}
