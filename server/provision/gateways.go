package provision

import (
	"context"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// CreateGateway stores a gateway, or replaces it. The accounts that list it try again.
func (p *Provisioner) CreateGateway(ctx context.Context, g api.Gateway) (api.GatewayCreated, error) {
	created, err := p.Gateways.Create(ctx, g)
	if err != nil {
		return api.GatewayCreated{}, err
	}
	return created, p.Accounts.GatewayEdited(ctx, g.Gateway)
}

// UpdateGateway changes the fields of a patch. The accounts that list the gateway try again.
func (p *Provisioner) UpdateGateway(ctx context.Context, id string, patch api.GatewayPatch) (
	api.GatewayUpdated, error) {
	updated, err := p.Gateways.Update(ctx, id, patch)
	if err != nil {
		return api.GatewayUpdated{}, err
	}
	return updated, p.Accounts.GatewayEdited(ctx, id)
}

// DeleteGateway refuses while accounts list the gateway: their mail would take another route, or none.
func (p *Provisioner) DeleteGateway(ctx context.Context, id string) (api.GatewayDeleted, error) {
	users, err := p.Accounts.UsingGateway(ctx, id)
	if err != nil {
		return api.GatewayDeleted{}, err
	}
	if len(users) > 0 {
		return api.GatewayDeleted{}, fault.New(fault.Conflict, "GatewayInUse",
			"Gateway %s is used by account %s. Remove it from the accounts first",
			id, strings.Join(users[:min(len(users), 10)], ", "))
	}
	if err := p.Gateways.Delete(ctx, id); err != nil {
		return api.GatewayDeleted{}, err
	}
	err = p.OAuth.Forget(ctx, "gateway:"+id)
	return api.GatewayDeleted{Gateway: id, Deleted: err == nil}, err
}
