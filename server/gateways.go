package server

import (
	"context"
	"net/http"

	"github.com/postroom/postroom/api"
)

type gatewayInput struct {
	Gateway string `path:"gateway" maxLength:"256" doc:"ID of the gateway"`
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

type providerImportInput struct {
	gatewayInput
	optionalBody[api.ProviderImportStart]
}

// providerImportStarted is an import that continues after the answer.
type providerImportStarted struct{ api.ProviderImport }

func (providerImportStarted) status() int { return http.StatusAccepted }

// importProviderList starts an import of a provider's suppression list.
func importProviderList(p *Parts) handler[providerImportInput, providerImportStarted] {
	return func(ctx context.Context, in *providerImportInput) (providerImportStarted, error) {
		started, err := p.Provider.Start(ctx, in.Gateway, in.content())
		return providerImportStarted{started}, err
	}
}
