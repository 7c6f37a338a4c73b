package server

import (
	"context"
	"strings"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

type gatewayRoutes struct {
	gateways *gateways.Store
	oauth    *oauth.Tokens
	accounts *accounts.Accounts
}

type createGatewayInput struct{ Body api.Gateway }

func (g gatewayRoutes) createGateway(ctx context.Context, in *createGatewayInput) (api.GatewayCreated,
	error) {
	created, err := g.gateways.Create(ctx, in.Body)
	if err != nil {
		return api.GatewayCreated{}, err
	}
	return created, g.accounts.GatewayEdited(ctx, in.Body.Gateway)
}

func (g gatewayRoutes) listGateways(ctx context.Context, in *pageInput) (api.GatewayPage, error) {
	return g.gateways.List(ctx, in.Page, in.size())
}

type gatewayInput struct {
	Gateway string `path:"gateway" maxLength:"256" doc:"Id of the gateway"`
}

func (g gatewayRoutes) getGateway(ctx context.Context, in *gatewayInput) (api.GatewayInfo, error) {
	return g.gateways.Get(ctx, in.Gateway)
}

type updateGatewayInput struct {
	gatewayInput
	Body api.GatewayPatch
}

func (g gatewayRoutes) updateGateway(ctx context.Context, in *updateGatewayInput) (api.GatewayUpdated,
	error) {
	updated, err := g.gateways.Update(ctx, in.Gateway, in.Body)
	if err != nil {
		return api.GatewayUpdated{}, err
	}
	return updated, g.accounts.GatewayEdited(ctx, in.Gateway)
}

// deleteGateway refuses while accounts list the gateway: their mail would take another route, or none.
func (g gatewayRoutes) deleteGateway(ctx context.Context, in *gatewayInput) (api.GatewayDeleted, error) {
	users, err := g.accounts.UsingGateway(ctx, in.Gateway)
	if err != nil {
		return api.GatewayDeleted{}, err
	}
	if len(users) > 0 {
		return api.GatewayDeleted{}, fault.New(fault.Conflict, "GatewayInUse",
			"Gateway %s is used by account %s; take it off their lists first",
			in.Gateway, strings.Join(users[:min(len(users), 10)], ", "))
	}
	if err := g.gateways.Delete(ctx, in.Gateway); err != nil {
		return api.GatewayDeleted{}, err
	}
	if err := g.oauth.Forget(ctx, "gateway:"+in.Gateway); err != nil {
		return api.GatewayDeleted{}, err
	}
	return api.GatewayDeleted{Gateway: in.Gateway, Deleted: true}, nil
}
