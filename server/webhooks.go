package server

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/webhooks"
)

type webhookRoutes struct{ webhooks *webhooks.Webhooks }

type endpointInput struct {
	ID string `path:"id" maxLength:"256" doc:"ID of the endpoint"`
}

func (in endpointInput) id() string { return in.ID }

type endpointChange[B any] struct {
	endpointInput
	body[B]
}

type rotateSecretInput struct {
	endpointInput
	optionalBody[api.SecretRotation]
}

type endpointStatsInput struct {
	endpointInput
	api.EndpointStatsQuery
}

func (w webhookRoutes) endpointStats(ctx context.Context, in *endpointStatsInput) (api.EndpointStats, error) {
	return w.webhooks.Stats(ctx, in.ID, in.Hours)
}

type testEndpointInput struct {
	endpointInput
	api.EndpointTest
}

func (w webhookRoutes) testEndpoint(ctx context.Context, in *testEndpointInput) (api.EndpointTested, error) {
	return w.webhooks.Test(ctx, in.ID, in.Event)
}

type replayInput struct {
	endpointInput
	api.EndpointReplay
}

func (w webhookRoutes) replayEndpoint(ctx context.Context, in *replayInput) (api.Replayed, error) {
	if in.Since.IsZero() {
		return api.Replayed{}, invalid("since", "is required")
	}
	if in.Background {
		err := w.webhooks.StartReplay(ctx, in.ID, in.Since)
		return api.Replayed{Running: err == nil}, err
	}
	return w.webhooks.Replay(ctx, in.ID, in.Since)
}

type listDeliveriesInput struct {
	endpointInput
	api.DeliveryQuery
}

func (w webhookRoutes) listDeliveries(ctx context.Context, in *listDeliveriesInput) (api.DeliveryPage,
	error) {
	return w.webhooks.FindDeliveries(ctx, in.ID, in.DeliveryQuery)
}

// listAbout lists the deliveries of a message. A bound token sees those to the endpoint of its account.
func (w webhookRoutes) listAbout(of messageRoutes) handler[messageInput, api.MessageDeliveries] {
	return func(ctx context.Context, in *messageInput) (api.MessageDeliveries, error) {
		story, err := of.listEvents(ctx, in)
		if err != nil {
			return api.MessageDeliveries{}, err
		}
		account, err := of.box.Reader.AccountOf(ctx, in.QueueID)
		if err != nil {
			return api.MessageDeliveries{}, err
		}
		return w.webhooks.DeliveriesAbout(ctx, account, boundTo(ctx) != "", story.IDs())
	}
}

type deliveryInput struct {
	endpointInput
	DeliveryID string `path:"deliveryId" maxLength:"256" doc:"ID of the delivery"`
}

func (w webhookRoutes) getDelivery(ctx context.Context, in *deliveryInput) (api.Delivery, error) {
	return w.webhooks.Delivery(ctx, in.ID, in.DeliveryID)
}

func (w webhookRoutes) redeliver(ctx context.Context, in *deliveryInput) (api.Redelivered, error) {
	return w.webhooks.Redeliver(ctx, in.ID, in.DeliveryID)
}

func (w webhookRoutes) listRoutes(ctx context.Context, in *api.PageQuery) (api.WebhookRoutePage, error) {
	page, err := w.webhooks.Endpoints(ctx, in.Page, pageSize(*in))
	out := api.WebhookRoutePage{PageNumbers: page.PageNumbers}
	for _, e := range page.Endpoints {
		out.Webhooks = append(out.Webhooks, routeOf(e))
	}
	return out, err
}

func (w webhookRoutes) getRoute(ctx context.Context, in *endpointInput) (api.WebhookRoute, error) {
	e, err := w.webhooks.Endpoint(ctx, in.ID)
	out := routeOf(e)
	out.Content = &api.WebhookRouteContent{}
	return out, err
}

// routeOf returns an endpoint with the fields of a route of EmailEngine.
func routeOf(e api.Endpoint) api.WebhookRoute {
	r := api.WebhookRoute{ID: e.ID, Name: e.Description, Description: e.Description, Created: e.Created,
		Updated: e.Updated, Enabled: e.Enabled, TargetURL: e.URL, TCount: e.Deliveries,
		CustomHeaders: []api.CustomHeader{}}
	if u, err := url.Parse(e.URL); err == nil && r.Name == "" {
		r.Name = u.Host
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		r.CustomHeaders = append(r.CustomHeaders, api.CustomHeader{Key: name, Value: e.Headers[name]})
	}
	if why := e.DisabledReason; why != "" || e.FailingSince != nil {
		r.Error = &api.WebhookRouteError{Message: cmp.Or(why, "no delivery has succeeded"),
			Created: e.FailingSince}
	}
	return r
}
