package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// CreateEndpoint creates a webhook endpoint. The answer shows its secret, this once.
func (c *Client) CreateEndpoint(ctx context.Context, req EndpointRequest) (e Endpoint, err error) {
	return e, c.do(ctx, call{method: http.MethodPost, path: "/v1/webhook-endpoints", in: req, out: &e})
}

// Endpoints lists webhook endpoints. A page size of 0 means 20.
func (c *Client) Endpoints(ctx context.Context, page, pageSize int) (p EndpointPage, err error) {
	return p, c.do(ctx, call{method: http.MethodGet, path: "/v1/webhook-endpoints", query: pageQuery(page, pageSize), out: &p})
}

// Endpoint shows a webhook endpoint, its secret masked.
func (c *Client) Endpoint(ctx context.Context, id string) (e Endpoint, err error) {
	return e, c.do(ctx, call{method: http.MethodGet, path: at("v1", "webhook-endpoints", id), out: &e})
}

// UpdateEndpoint changes a webhook endpoint.
func (c *Client) UpdateEndpoint(ctx context.Context, id string, req EndpointRequest) (e Endpoint, err error) {
	return e, c.do(ctx, call{method: http.MethodPut, path: at("v1", "webhook-endpoints", id), in: req, out: &e})
}

// DeleteEndpoint deletes a webhook endpoint.
func (c *Client) DeleteEndpoint(ctx context.Context, id string) (answer Deleted, err error) {
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "webhook-endpoints", id), out: &answer})
}

// TestEndpoint sends a test event to an endpoint and waits for what it answers.
func (c *Client) TestEndpoint(ctx context.Context, id string) (answer EndpointTested, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: at("v1", "webhook-endpoints", id, "test"), out: &answer})
}

// ReplayEndpoint sends an endpoint the events again that happened since a moment.
func (c *Client) ReplayEndpoint(ctx context.Context, id string, since time.Time) (answer Replayed, err error) {
	query := url.Values{"since": {since.UTC().Format(time.RFC3339Nano)}}
	return answer, c.do(ctx, call{method: http.MethodPost, path: at("v1", "webhook-endpoints", id, "replay"), query: query, out: &answer})
}

// Deliveries lists the deliveries of an endpoint, newest first. A page size of 0 means 20.
func (c *Client) Deliveries(ctx context.Context, endpoint string, page, pageSize int) (p DeliveryPage, err error) {
	path := at("v1", "webhook-endpoints", endpoint, "deliveries")
	return p, c.do(ctx, call{method: http.MethodGet, path: path, query: pageQuery(page, pageSize), out: &p})
}

// FindDeliveries lists the deliveries of an endpoint that are about messages a search finds, newest first. The query is in the language of
// Search. A page size of 0 means 20.
func (c *Client) FindDeliveries(ctx context.Context, endpoint, q string, page, pageSize int) (p DeliveryPage, err error) {
	query := pageQuery(page, pageSize)
	query.Set("q", q)
	return p, c.do(ctx, call{method: http.MethodGet, path: at("v1", "webhook-endpoints", endpoint, "deliveries"), query: query, out: &p})
}

// Delivery shows one delivery and what was sent.
func (c *Client) Delivery(ctx context.Context, endpoint, id string) (d Delivery, err error) {
	return d, c.do(ctx, call{method: http.MethodGet, path: at("v1", "webhook-endpoints", endpoint, "deliveries", id), out: &d})
}

// Redeliver sends a delivery again, as a new one.
func (c *Client) Redeliver(ctx context.Context, endpoint, id string) (answer Redelivered, err error) {
	path := at("v1", "webhook-endpoints", endpoint, "deliveries", id, "redeliver")
	return answer, c.do(ctx, call{method: http.MethodPost, path: path, out: &answer})
}
