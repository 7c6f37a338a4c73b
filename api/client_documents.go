package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Search finds messages, those that the email log has long forgotten, too.
func (c *Client) Search(ctx context.Context, q DocumentQuery) (page DocumentPage, err error) {
	return page, c.do(ctx, call{method: http.MethodGet, path: "/v1/documents/search", query: q.values(), out: &page})
}

// Documents says how the search index is doing.
func (c *Client) Documents(ctx context.Context) (s DocumentsState, err error) {
	return s, c.do(ctx, call{method: http.MethodGet, path: "/v1/documents", out: &s})
}

// RebuildDocuments has the search index made anew, beside the one in use. It answers at once; Documents says how far it is.
func (c *Client) RebuildDocuments(ctx context.Context) (b DocumentRebuild, err error) {
	return b, c.do(ctx, call{method: http.MethodPost, path: "/v1/documents/rebuild", out: &b})
}

// values writes a query as a URL has it. The account is not in it: the token says whose mail is looked at, and account: in the query narrows that.
func (q DocumentQuery) values() url.Values {
	v := pageQuery(q.Page, q.PageSize)
	for key, value := range map[string]string{"q": q.Q, "cursor": q.Cursor, "sort": string(q.Sort)} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if q.Page > 0 {
		v.Set("page", strconv.Itoa(q.Page))
	}
	return v
}
