package server

import "github.com/postroom/postroom/api"

type gatewayInput struct {
	Gateway string `path:"gateway" maxLength:"256" doc:"Id of the gateway"`
}

func (in gatewayInput) id() string { return in.Gateway }

type gatewayWebhookInput struct {
	gatewayInput
	optionalBody[api.GatewayWebhookRequest]
}

type updateGatewayInput struct {
	gatewayInput
	body[api.GatewayPatch]
}
