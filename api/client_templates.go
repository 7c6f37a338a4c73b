package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// CreateTemplate stores a new template, partial or layout.
func (c *Client) CreateTemplate(ctx context.Context, t TemplateRequest) (answer TemplateCreated, err error) {
	return answer, c.do(ctx, call{method: http.MethodPost, path: "/v1/templates/template", in: t, out: &answer})
}

// Templates lists templates without their content.
func (c *Client) Templates(ctx context.Context, q TemplateQuery) (p TemplatePage, err error) {
	return p, c.do(ctx, call{method: http.MethodGet, path: "/v1/templates", query: q.values(), out: &p})
}

// Template shows a template.
func (c *Client) Template(ctx context.Context, id string) (t Template, err error) {
	return t, c.do(ctx, call{method: http.MethodGet, path: at("v1", "templates", "template", id), out: &t})
}

// UpdateTemplate changes what is not nil of a template.
func (c *Client) UpdateTemplate(ctx context.Context, id string, p TemplatePatch) (answer TemplateUpdated, err error) {
	return answer, c.do(ctx, call{method: http.MethodPut, path: at("v1", "templates", "template", id), in: p, out: &answer})
}

// DeleteTemplate deletes a template that no other one uses.
func (c *Client) DeleteTemplate(ctx context.Context, id string) (answer TemplateDeleted, err error) {
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "templates", "template", id), out: &answer})
}

// FlushTemplates deletes all templates of an account.
func (c *Client) FlushTemplates(ctx context.Context, account string) (answer TemplatesFlushed, err error) {
	q := url.Values{"force": {"true"}}
	return answer, c.do(ctx, call{method: http.MethodDelete, path: at("v1", "templates", "account", account), query: q, out: &answer})
}

// TemplateVersions lists the versions that are kept of a template, the current one first.
func (c *Client) TemplateVersions(ctx context.Context, id string) (v TemplateVersions, err error) {
	return v, c.do(ctx, call{method: http.MethodGet, path: at("v1", "templates", "template", id, "versions"), out: &v})
}

// TemplateVersion shows a version of a template.
func (c *Client) TemplateVersion(ctx context.Context, id string, version int) (v TemplateVersion, err error) {
	return v, c.do(ctx, call{method: http.MethodGet, path: at("v1", "templates", "template", id, "versions", strconv.Itoa(version)), out: &v})
}

// RestoreTemplate gives a template the content of one of its versions again, as a new version.
func (c *Client) RestoreTemplate(ctx context.Context, id string, version int) (answer TemplateUpdated, err error) {
	in := TemplateRestore{Version: version}
	return answer, c.do(ctx, call{method: http.MethodPost, path: at("v1", "templates", "template", id, "restore"), in: in, out: &answer})
}

// PreviewTemplate fills a stored template with data, without sending anything.
func (c *Client) PreviewTemplate(ctx context.Context, id string, req TemplatePreviewRequest) (p TemplatePreview, err error) {
	return p, c.do(ctx, call{method: http.MethodPost, path: at("v1", "templates", "template", id, "render"), in: req, out: &p})
}

// TryTemplate fills a template that is not stored with data, without sending anything.
func (c *Client) TryTemplate(ctx context.Context, t TemplateTrial) (p TemplatePreview, err error) {
	return p, c.do(ctx, call{method: http.MethodPost, path: "/v1/templates/render", in: t, out: &p})
}
