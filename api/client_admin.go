package api

import (
	"context"
	"net/http"
)

// Queue shows a queue: submit, bulk, notify or documents.
func (c *Client) Queue(ctx context.Context, name string) (q QueueStatus, err error) {
	return q, c.do(ctx, call{method: http.MethodGet, path: at("v1", "settings", "queue", name), out: &q})
}

// SetPaused pauses or resumes a queue.
func (c *Client) SetPaused(ctx context.Context, name string, paused bool) (answer QueuePaused, err error) {
	return answer, c.do(ctx, call{method: http.MethodPut, path: at("v1", "settings", "queue", name), in: QueuePatch{Paused: &paused}, out: &answer})
}

// Stats shows the instance at a glance. The query narrows its counters, and nothing else of it.
func (c *Client) Stats(ctx context.Context, q CounterQuery) (s Stats, err error) {
	return s, c.do(ctx, call{method: http.MethodGet, path: "/v1/stats", query: q.values(), out: &s})
}

// Settings shows the settings that can be changed while Postroom runs.
func (c *Client) Settings(ctx context.Context) (s Settings, err error) {
	return s, c.do(ctx, call{method: http.MethodGet, path: "/v1/settings", out: &s})
}

// UpdateSettings changes the settings that are not nil.
func (c *Client) UpdateSettings(ctx context.Context, s Settings) (answer SettingsUpdated, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: "/v1/settings", in: s, out: &answer})
}

// CreateAccount creates an account, or replaces it.
func (c *Client) CreateAccount(ctx context.Context, a Account) (answer AccountCreated, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: "/v1/account", in: a, out: &answer})
}

// Accounts lists accounts. A page size of 0 means 20.
func (c *Client) Accounts(ctx context.Context, page, pageSize int) (p AccountPage, err error) {
	return p, c.do(ctx, call{method: http.MethodGet, path: "/v1/accounts", query: pageQuery(page, pageSize), out: &p})
}

// Account shows an account, its secrets masked.
func (c *Client) Account(ctx context.Context, id string) (a AccountInfo, err error) {
	return a, c.do(ctx, call{method: http.MethodGet, path: at("v1", "account", id), out: &a})
}

// UpdateAccount changes what is not nil of an account.
func (c *Client) UpdateAccount(ctx context.Context, id string, p AccountPatch) (a AccountInfo, err error) {
	return a, c.do(ctx, call{method: http.MethodPut, path: at("v1", "account", id), in: p, out: &a})
}

// DeleteAccount deletes an account, what it has queued, its templates, and the tokens bound to it.
func (c *Client) DeleteAccount(ctx context.Context, id string) (answer AccountDeleted, err error) {
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "account", id), out: &answer})
}

// CreateGateway creates a gateway, or replaces it.
func (c *Client) CreateGateway(ctx context.Context, g Gateway) (answer GatewayCreated, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: "/v1/gateway", in: g, out: &answer})
}

// Gateways lists gateways. A page size of 0 means 20.
func (c *Client) Gateways(ctx context.Context, page, pageSize int) (p GatewayPage, err error) {
	return p, c.do(ctx, call{method: http.MethodGet, path: "/v1/gateways", query: pageQuery(page, pageSize), out: &p})
}

// Gateway shows a gateway, its secrets masked.
func (c *Client) Gateway(ctx context.Context, id string) (g GatewayInfo, err error) {
	return g, c.do(ctx, call{method: http.MethodGet, path: at("v1", "gateway", id), out: &g})
}

// UpdateGateway changes what is not nil of a gateway.
func (c *Client) UpdateGateway(ctx context.Context, id string, p GatewayPatch) (answer GatewayUpdated, err error) {
	return answer, c.do(ctx, call{method: http.MethodPut, path: at("v1", "gateway", "edit", id), in: p, out: &answer})
}

// DeleteGateway deletes a gateway that no account lists.
func (c *Client) DeleteGateway(ctx context.Context, id string) (answer GatewayDeleted, err error) {
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "gateway", id), out: &answer})
}

// VerifyAccount tries to log in to a relay, without sending anything.
func (c *Client) VerifyAccount(ctx context.Context, req VerifyRequest) (answer VerifyAnswer, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: "/v1/verifyAccount", in: req, out: &answer})
}

// CreateToken makes an access token. The answer shows it, this once.
func (c *Client) CreateToken(ctx context.Context, req TokenRequest) (answer TokenCreated, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: "/v1/tokens", in: req, out: &answer})
}

// Tokens lists access tokens. A page size of 0 means 20.
func (c *Client) Tokens(ctx context.Context, page, pageSize int) (p TokenPage, err error) {
	return p, c.do(ctx, call{method: http.MethodGet, path: "/v1/tokens", query: pageQuery(page, pageSize), out: &p})
}

// Token shows an access token by its id.
func (c *Client) Token(ctx context.Context, id string) (t TokenInfo, err error) {
	return t, c.do(ctx, call{method: http.MethodGet, path: at("v1", "tokens", id), out: &t})
}

// DeleteToken deletes an access token by its id.
func (c *Client) DeleteToken(ctx context.Context, id string) (answer Deleted, err error) {
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "tokens", id), out: &answer})
}

// Health asks whether the process is alive.
func (c *Client) Health(ctx context.Context) (h Health, err error) {
	return h, c.do(ctx, call{method: http.MethodGet, path: "/health", out: &h})
}

// Ready asks whether work can be taken on. Not being ready is an answer, not an error.
func (c *Client) Ready(ctx context.Context) (r Ready, err error) {
	return r, c.do(ctx, call{method: http.MethodGet, path: "/ready", out: &r, accept: http.StatusServiceUnavailable})
}
