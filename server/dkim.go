package server

import (
	"context"
	"strings"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api"
)

type dkimRoutes struct{ keys *dkim.Keys }

type domainInput struct {
	Domain string `path:"domain" maxLength:"253" doc:"Domain in the From address"`
}

func (in domainInput) id() string { return in.Domain }

type putDomainKeyInput struct {
	domainInput
	body[api.NewDomainKey]
}

func (d dkimRoutes) putDomainKey(ctx context.Context, in *putDomainKeyInput) (api.DomainKey, error) {
	if !strings.EqualFold(in.Body.Domain, in.Domain) {
		return api.DomainKey{}, invalid("domain", "must be the domain of the path")
	}
	return d.keys.Put(ctx, in.Body)
}

func (d dkimRoutes) deleteDomainKey(ctx context.Context, in *domainInput) (api.Deleted, error) {
	err := d.keys.Delete(ctx, in.Domain)
	return api.Deleted{Deleted: err == nil}, err
}
