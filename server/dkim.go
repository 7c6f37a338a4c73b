package server

import (
	"context"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

type domainInput struct {
	Domain string `path:"domain" maxLength:"253" doc:"The domain in the From of the mail"`
}

type putDomainKeyInput struct {
	domainInput
	Body api.DKIM
}

func (s *Server) putDomainKey(ctx context.Context, in *putDomainKeyInput) (api.DomainKey, error) {
	if !strings.EqualFold(in.Body.Domain, in.Domain) {
		return api.DomainKey{}, fault.InvalidFields([]fault.Field{{Key: "domain", Message: "must be the domain of the path"}})
	}
	return s.DomainKeys.Put(ctx, in.Body)
}

func (s *Server) listDomainKeys(ctx context.Context, _ *struct{}) (api.DomainKeyPage, error) {
	page, err := s.DomainKeys.List(ctx)
	page.Keys = rows(page.Keys)
	return page, err
}

func (s *Server) getDomainKey(ctx context.Context, in *domainInput) (api.DomainKey, error) {
	return s.DomainKeys.Get(ctx, in.Domain)
}

func (s *Server) deleteDomainKey(ctx context.Context, in *domainInput) (api.Deleted, error) {
	if err := s.DomainKeys.Delete(ctx, in.Domain); err != nil {
		return api.Deleted{}, err
	}
	return api.Deleted{Deleted: true}, nil
}
