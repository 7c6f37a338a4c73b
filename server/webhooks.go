package server

import (
	"context"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/webhooks"
)

type webhookRoutes struct{ webhooks *webhooks.Webhooks }

type createEndpointInput struct{ Body api.EndpointRequest }

func (w webhookRoutes) createEndpoint(ctx context.Context, in *createEndpointInput) (api.Endpoint, error) {
	return w.webhooks.Create(ctx, in.Body)
}

func (w webhookRoutes) listEndpoints(ctx context.Context, in *pageInput) (api.EndpointPage, error) {
	return w.webhooks.Endpoints(ctx, in.Page, in.size())
}

type endpointInput struct {
	ID string `path:"id" maxLength:"256" doc:"Id of the endpoint"`
}

func (w webhookRoutes) getEndpoint(ctx context.Context, in *endpointInput) (api.Endpoint, error) {
	return w.webhooks.Endpoint(ctx, in.ID)
}

type updateEndpointInput struct {
	endpointInput
	Body api.EndpointRequest
}

func (w webhookRoutes) updateEndpoint(ctx context.Context, in *updateEndpointInput) (api.Endpoint, error) {
	return w.webhooks.Update(ctx, in.ID, in.Body)
}

func (w webhookRoutes) deleteEndpoint(ctx context.Context, in *endpointInput) (api.Deleted, error) {
	deleted, err := w.webhooks.Delete(ctx, in.ID)
	return api.Deleted{Deleted: deleted}, err
}

func (w webhookRoutes) testEndpoint(ctx context.Context, in *endpointInput) (api.EndpointTested, error) {
	return w.webhooks.Test(ctx, in.ID)
}

type replayInput struct {
	endpointInput
	Since time.Time `query:"since" doc:"Send the events of this time and later; required"`
}

func (w webhookRoutes) replayEndpoint(ctx context.Context, in *replayInput) (api.Replayed, error) {
	if in.Since.IsZero() {
		return api.Replayed{}, invalid("since", "is required")
	}
	return w.webhooks.Replay(ctx, in.ID, in.Since)
}

type listDeliveriesInput struct {
	endpointInput
	pageInput
	Q string `query:"q" maxLength:"4096" doc:"Only deliveries about messages that match this query: words, to:, subject:, status:… see docs/search.md"`
}

func (w webhookRoutes) listDeliveries(ctx context.Context, in *listDeliveriesInput) (api.DeliveryPage,
	error) {
	if q := strings.TrimSpace(in.Q); q != "" {
		page, err := w.webhooks.FindDeliveries(ctx, in.ID, q, in.Page, in.size())
		return page, err
	}
	return w.webhooks.Deliveries(ctx, in.ID, in.Page, in.size())
}

type deliveryInput struct {
	endpointInput
	DeliveryID string `path:"deliveryId" maxLength:"256" doc:"Id of the delivery"`
}

func (w webhookRoutes) getDelivery(ctx context.Context, in *deliveryInput) (api.Delivery, error) {
	return w.webhooks.Delivery(ctx, in.ID, in.DeliveryID)
}

func (w webhookRoutes) redeliver(ctx context.Context, in *deliveryInput) (api.Redelivered, error) {
	return w.webhooks.Redeliver(ctx, in.ID, in.DeliveryID)
}
