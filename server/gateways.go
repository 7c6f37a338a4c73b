package server

import (
	"context"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/provision"
)

type gatewayRoutes struct {
	provision *provision.Provisioner
	gateways  *gateways.Store
}

type createGatewayInput struct{ Body api.Gateway }

func (g gatewayRoutes) createGateway(ctx context.Context, in *createGatewayInput) (api.GatewayCreated,
	error) {
	return g.provision.CreateGateway(ctx, in.Body)
}

func (g gatewayRoutes) listGateways(ctx context.Context, in *api.PageQuery) (api.GatewayPage, error) {
	return g.gateways.List(ctx, in.Page, pageSize(*in))
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
	return g.provision.UpdateGateway(ctx, in.Gateway, in.Body)
}

func (g gatewayRoutes) deleteGateway(ctx context.Context, in *gatewayInput) (api.GatewayDeleted, error) {
	return g.provision.DeleteGateway(ctx, in.Gateway)
}
