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

func (t tokenRoutes) createToken(ctx context.Context, in *body[api.TokenRequest]) (api.TokenCreated,
	error) {
	return t.tokens.Create(ctx, in.Body, time.Now())
}

func (t tokenRoutes) listTokens(ctx context.Context, in *api.TokenQuery) (api.TokenPage, error) {
	return t.tokens.List(ctx, in.Account, in.Page, pageSize(in.PageQuery))
}

type tokenInput struct {
	ID string `path:"id" maxLength:"256" doc:"ID of the token, not the token itself"`
}

func (in tokenInput) id() string { return in.ID }

type rotateTokenInput struct {
	tokenInput
	optionalBody[api.TokenRotation]
}

func (t tokenRoutes) rotateToken(ctx context.Context, in *rotateTokenInput) (api.TokenCreated, error) {
	return t.tokens.Rotate(ctx, in.ID, in.content(), time.Now())
}

func (t tokenRoutes) getTokenUsage(ctx context.Context, in *tokenInput) (api.Usage, error) {
	info, err := t.tokens.Get(ctx, in.ID)
	if err != nil {
		return api.Usage{}, err
	}
	return t.box.Reader.TokenUsage(ctx, info)
}
