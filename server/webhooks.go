package server

import (
	"context"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

type createEndpointInput struct{ Body api.EndpointRequest }

func (s *Server) createEndpoint(ctx context.Context, in *createEndpointInput) (api.Endpoint, error) {
	return s.Webhooks.Create(ctx, in.Body)
}

func (s *Server) listEndpoints(ctx context.Context, in *pageInput) (api.EndpointPage, error) {
	page, err := s.Webhooks.Endpoints(ctx, in.Page, in.size())
	page.Endpoints = rows(page.Endpoints)
	return page, err
}

type endpointInput struct {
	ID string `path:"id" maxLength:"256" doc:"Id of the endpoint"`
}

func (s *Server) getEndpoint(ctx context.Context, in *endpointInput) (api.Endpoint, error) {
	return s.Webhooks.Endpoint(ctx, in.ID)
}

type updateEndpointInput struct {
	endpointInput
	Body api.EndpointRequest
}

func (s *Server) updateEndpoint(ctx context.Context, in *updateEndpointInput) (api.Endpoint, error) {
	return s.Webhooks.Update(ctx, in.ID, in.Body)
}

func (s *Server) deleteEndpoint(ctx context.Context, in *endpointInput) (api.Deleted, error) {
	deleted, err := s.Webhooks.Delete(ctx, in.ID)
	return api.Deleted{Deleted: deleted}, err
}

func (s *Server) testEndpoint(ctx context.Context, in *endpointInput) (api.EndpointTested, error) {
	return s.Webhooks.Test(ctx, in.ID)
}

type replayInput struct {
	endpointInput
	Since time.Time `query:"since" doc:"Send the events again that happened at this moment or later; required"`
}

func (s *Server) replayEndpoint(ctx context.Context, in *replayInput) (api.Replayed, error) {
	if in.Since.IsZero() {
		return api.Replayed{}, fault.InvalidFields([]fault.Field{wrong("since", "is required")})
	}
	return s.Webhooks.Replay(ctx, in.ID, in.Since)
}

type listDeliveriesInput struct {
	endpointInput
	pageInput
	Q string `query:"q" maxLength:"4096" doc:"Only deliveries about messages that this finds, in the language of the search: words, to:, subject:, status:… see docs/search.md"`
}

func (s *Server) listDeliveries(ctx context.Context, in *listDeliveriesInput) (api.DeliveryPage, error) {
	if q := strings.TrimSpace(in.Q); q != "" {
		page, err := s.Webhooks.FindDeliveries(ctx, in.ID, q, in.Page, in.size())
		page.Deliveries = rows(page.Deliveries)
		return page, err
	}
	page, err := s.Webhooks.Deliveries(ctx, in.ID, in.Page, in.size())
	page.Deliveries = rows(page.Deliveries)
	return page, err
}

type deliveryInput struct {
	endpointInput
	DeliveryID string `path:"deliveryId" maxLength:"256" doc:"Id of the delivery"`
}

func (s *Server) getDelivery(ctx context.Context, in *deliveryInput) (api.Delivery, error) {
	return s.Webhooks.Delivery(ctx, in.ID, in.DeliveryID)
}

func (s *Server) redeliver(ctx context.Context, in *deliveryInput) (api.Redelivered, error) {
	return s.Webhooks.Redeliver(ctx, in.ID, in.DeliveryID)
}
