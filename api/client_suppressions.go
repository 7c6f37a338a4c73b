package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Suppressions lists whom not to mail.
func (c *Client) Suppressions(ctx context.Context, q SuppressionQuery) (p SuppressionPage, err error) {
	return p, c.do(ctx, call{method: http.MethodGet, path: "/v1/suppressions", query: q.values(), out: &p})
}

// CheckSuppression tells all that is known against an address, in all scopes.
func (c *Client) CheckSuppression(ctx context.Context, email string) (f SuppressionFound, err error) {
	return f, c.do(ctx, call{method: http.MethodGet, path: "/v1/suppressions/check", query: url.Values{"email": {email}}, out: &f})
}

// AddSuppressions adds up to 1,000 suppressions. When one of them is wrong, none is added.
func (c *Client) AddSuppressions(ctx context.Context, list ...NewSuppression) (answer SuppressionsAdded, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: "/v1/suppressions", in: SuppressionRequest{Suppressions: list}, out: &answer})
}

// RemoveSuppression removes what one scope has against an address or a domain.
func (c *Client) RemoveSuppression(ctx context.Context, r SuppressionRemoval) (answer SuppressionRemoved, err error) {
	return answer, c.do(ctx, call{method: http.MethodDelete, path: "/v1/suppressions", query: r.values(), out: &answer})
}

// ImportSuppressions imports a CSV file as it is read, however long that takes: ctx is the only bound. It answers at the end; meanwhile
// [Client.SuppressionImport] tells how far it came. After an error the same file may be imported again.
func (c *Client) ImportSuppressions(ctx context.Context, file io.Reader, o SuppressionImportOptions) (i SuppressionImport, err error) {
	return i, c.patient().do(ctx, call{method: http.MethodPost, path: "/v1/suppressions/import", query: o.values(), body: file, kind: "text/csv", out: &i})
}

// SuppressionImport tells how far an import came.
func (c *Client) SuppressionImport(ctx context.Context, id string) (i SuppressionImport, err error) {
	return i, c.do(ctx, call{method: http.MethodGet, path: at("v1", "suppressions", "imports", id), out: &i})
}

// ExportSuppressions writes suppressions as CSV while they arrive, however long that takes: ctx is the only bound. An export that was broken
// off is an error.
func (c *Client) ExportSuppressions(ctx context.Context, q SuppressionQuery, w io.Writer) error {
	const path = "/v1/suppressions/export"
	resp, err := c.patient().send(ctx, call{method: http.MethodGet, path: path, query: q.values()})
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end, or given up
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return fmt.Errorf("GET %s: read answer: %w", path, err)
		}
		return failure(resp, body)
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return nil
}

// patient is the client without a limit of time for a whole request.
func (c *Client) patient() *Client {
	if c.http.Timeout == 0 {
		return c
	}
	h := *c.http
	h.Timeout = time.Duration(0)
	return &Client{base: c.base, token: c.token, http: &h}
}

// Blocklists lists the lists that have suppressions, with their numbers.
func (c *Client) Blocklists(ctx context.Context, page, pageSize int) (b Blocklists, err error) {
	return b, c.do(ctx, call{method: http.MethodGet, path: "/v1/blocklists", query: pageQuery(page, pageSize), out: &b})
}

// Blocklist lists the suppressions of a list.
func (c *Client) Blocklist(ctx context.Context, list string, page, pageSize int) (b BlocklistPage, err error) {
	return b, c.do(ctx, call{method: http.MethodGet, path: at("v1", "blocklist", list), query: pageQuery(page, pageSize), out: &b})
}

// AddToBlocklist adds an address to the suppressions of a list.
func (c *Client) AddToBlocklist(ctx context.Context, list string, req BlocklistRequest) (answer BlocklistAdded, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: at("v1", "blocklist", list), in: req, out: &answer})
}

// RemoveFromBlocklist removes an address from the suppressions of a list.
func (c *Client) RemoveFromBlocklist(ctx context.Context, list, recipient string) (answer SuppressionRemoved, err error) {
	q := url.Values{"recipient": {recipient}}
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "blocklist", list), query: q, out: &answer})
}
