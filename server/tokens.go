package server

import (
	"context"

	"github.com/postroom/postroom/api"
)

type createTokenInput struct{ Body api.TokenRequest }

func (s *Server) createToken(ctx context.Context, in *createTokenInput) (api.TokenCreated, error) {
	return s.Access.Create(ctx, in.Body, s.opts.Now())
}

func (s *Server) listTokens(ctx context.Context, in *pageInput) (api.TokenPage, error) {
	page, err := s.Access.List(ctx, in.Page, in.size())
	page.Tokens = rows(page.Tokens)
	return page, err
}

type tokenInput struct {
	ID string `path:"id" maxLength:"256" doc:"Id of the token, not the token itself"`
}

func (s *Server) getToken(ctx context.Context, in *tokenInput) (api.TokenInfo, error) {
	return s.Access.Get(ctx, in.ID)
}

func (s *Server) deleteToken(ctx context.Context, in *tokenInput) (api.Deleted, error) {
	deleted, err := s.Access.Delete(ctx, in.ID)
	return api.Deleted{Deleted: deleted}, err
}
