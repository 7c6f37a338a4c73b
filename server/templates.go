package server

import (
	"context"
	"strconv"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/templates"
)

// templateBody is the size limit of bodies with a template: 1 MB, and what JSON adds to it.
const templateBody = 4 << 20

type templateRoutes struct {
	templates *templates.Templates
	accounts  *accounts.Accounts
}

func (t templateRoutes) createTemplate(ctx context.Context, in *body[api.TemplateRequest]) (
	api.TemplateCreated, error) {
	if a := in.Body.Account; a != nil && *a != "" && boundTo(ctx) == "" {
		// nothing would ever delete a template of an unknown account
		if _, err := t.accounts.Get(ctx, *a); err != nil {
			return api.TemplateCreated{}, err
		}
	}
	return t.templates.Create(ctx, boundTo(ctx), in.Body)
}

func (t templateRoutes) listTemplates(ctx context.Context, in *api.TemplateQuery) (api.TemplatePage, error) {
	if bound := boundTo(ctx); bound != "" && in.Account != "" && in.Account != bound {
		return api.TemplatePage{}, fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	return t.templates.List(ctx, boundTo(ctx), *in)
}

type templateInput struct {
	ID string `path:"id" maxLength:"128" doc:"ID of the template"`
}

func (in templateInput) id() string { return in.ID }

type updateTemplateInput struct {
	templateInput
	body[api.TemplatePatch]
}

type templateVersionInput struct {
	templateInput
	Version string `path:"version" maxLength:"9" doc:"Number of the version"`
}

func (t templateRoutes) getTemplateVersion(ctx context.Context, in *templateVersionInput) (
	api.TemplateVersion, error) {
	number, err := strconv.Atoi(in.Version)
	if err != nil || number < 1 {
		return api.TemplateVersion{}, invalid("version", "must be a number")
	}
	return t.templates.Version(ctx, boundTo(ctx), in.ID, number)
}

type restoreTemplateInput struct {
	templateInput
	Body api.TemplateRestore
}

func (t templateRoutes) restoreTemplate(ctx context.Context, in *restoreTemplateInput) (api.TemplateUpdated,
	error) {
	return t.templates.Restore(ctx, boundTo(ctx), in.ID, in.Body.Version)
}

type previewTemplateInput struct {
	templateInput
	optionalBody[api.TemplatePreviewRequest]
}

type flushTemplatesInput struct {
	accountInput
	api.FlushQuery
}

func (t templateRoutes) flushTemplates(ctx context.Context, in *flushTemplatesInput) (api.TemplatesFlushed,
	error) {
	if !grantOf(ctx).CanSee(in.Account) {
		return api.TemplatesFlushed{}, fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	if !in.Force {
		return api.TemplatesFlushed{}, invalid("force", "must be true")
	}
	n, err := t.templates.Flush(ctx, in.Account)
	return api.TemplatesFlushed{Flushed: err == nil, Account: in.Account, Deleted: n}, err
}
