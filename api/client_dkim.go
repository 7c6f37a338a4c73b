package api

import (
	"context"
	"net/http"
)

// PutDomainKey stores the DKIM key of a domain, in place of the one there was. A masked privateKey ("******") keeps the stored one.
func (c *Client) PutDomainKey(ctx context.Context, d DKIM) (k DomainKey, err error) {
	return k, c.do(ctx, call{method: http.MethodPut, path: at("v1", "dkim", d.Domain), in: d, out: &k})
}

// DomainKeys lists the DKIM keys of all domains, masked.
func (c *Client) DomainKeys(ctx context.Context) (p DomainKeyPage, err error) {
	return p, c.do(ctx, call{method: http.MethodGet, path: "/v1/dkim", out: &p})
}

// DomainKey shows the DKIM key of a domain, masked.
func (c *Client) DomainKey(ctx context.Context, domain string) (k DomainKey, err error) {
	return k, c.do(ctx, call{method: http.MethodGet, path: at("v1", "dkim", domain), out: &k})
}

// DeleteDomainKey deletes the DKIM key of a domain, whose mail goes unsigned from then on.
func (c *Client) DeleteDomainKey(ctx context.Context, domain string) (answer Deleted, err error) {
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "dkim", domain), out: &answer})
}
