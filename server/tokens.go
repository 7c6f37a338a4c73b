package server

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/server/access"
)

type tokenRoutes struct {
	tokens *access.Access
	box    *outbox.Outbox
}

type createTokenInput struct{ Body api.TokenRequest }

func (t tokenRoutes) createToken(ctx context.Context, in *createTokenInput) (api.TokenCreated, error) {
	return t.tokens.Create(ctx, in.Body, time.Now())
}

func (t tokenRoutes) listTokens(ctx context.Context, in *api.TokenQuery) (api.TokenPage, error) {
	return t.tokens.List(ctx, in.Account, in.Page, pageSize(in.PageQuery))
}

type tokenInput struct {
	ID string `path:"id" maxLength:"256" doc:"Id of the token, not the token itself"`
}

func (t tokenRoutes) getToken(ctx context.Context, in *tokenInput) (api.TokenInfo, error) {
	return t.tokens.Get(ctx, in.ID)
}

type rotateTokenInput struct {
	tokenInput
	Body *api.TokenRotation
}

func (t tokenRoutes) rotateToken(ctx context.Context, in *rotateTokenInput) (api.TokenCreated, error) {
	var req api.TokenRotation
	if in.Body != nil {
		req = *in.Body
	}
	return t.tokens.Rotate(ctx, in.ID, req, time.Now())
}

func (t tokenRoutes) getTokenUsage(ctx context.Context, in *tokenInput) (api.Usage, error) {
	info, err := t.tokens.Get(ctx, in.ID)
	if err != nil {
		return api.Usage{}, err
	}
	return t.box.Reader.TokenUsage(ctx, info)
}

func (t tokenRoutes) deleteToken(ctx context.Context, in *tokenInput) (api.Deleted, error) {
	deleted, err := t.tokens.Delete(ctx, in.ID)
	return api.Deleted{Deleted: deleted}, err
}
