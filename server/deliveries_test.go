package server

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/search"
)

func TestDeliveriesAreFoundByTheSearch(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, p := t.Context(), w.parts
	endpoint, before := p.endpoint(t), time.Now().Add(-time.Second)
	pipe := p.db.Client().Pipeline()
	for i := range 2_100 { // more than are searched
		e, err := event.New(fmt.Sprint("E", i), event.MessageQueued, "acme", time.Now(),
			event.Message{QueueID: fmt.Sprint("Q", i)})
		if err != nil {
			t.Fatal(err)
		}
		line, err := e.Line()
		if err != nil {
			t.Fatal(err)
		}
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: redisdb.Key(0, "events"), Values: []any{"e", line}})
	}
	_, err := pipe.Exec(ctx)
	if err == nil {
		_, err = p.Webhooks.Replay(ctx, endpoint, before)
	}
	newest, listErr := p.Webhooks.Deliveries(ctx, endpoint, 0, 30)
	if err := errors.Join(err, listErr); err != nil {
		t.Fatal(err)
	}
	for _, d := range newest.Deliveries {
		p.index.found.Hits = append(p.index.found.Hits,
			search.Hit{Document: search.Document{QueueID: d.QueueID}})
	}
	got, err := api.ListDeliveries.Do(ctx, w.client, api.DeliveryQuery{Q: "to:ann subject:\"your invoice\"",
		Page: 2, PageSize: 10}, endpoint)
	ids := func(page []api.Delivery) (all []string) {
		for _, d := range page {
			all = append(all, d.ID)
		}
		return all
	}
	if err != nil || !got.Partial || got.Page != 2 || got.Total != 30 ||
		!slices.Equal(ids(got.Deliveries), ids(newest.Deliveries[20:])) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := api.ListDeliveries.Do(ctx, w.client, api.DeliveryQuery{Q: "  "}, endpoint); err != nil ||
		got.Partial || got.Total != 2_100 {
		t.Errorf("a blank query lists all: %+v, %v", got, err)
	}
	if p.Documents, err = search.New(p.Documents.Parts, search.Options{Kind: "none"}); err != nil {
		t.Fatal(err)
	}
	_, err = api.ListDeliveries.Do(ctx, w.client, api.DeliveryQuery{Q: "x"}, endpoint)
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.Code != "SearchOff" {
		t.Errorf("without an index: %v", err)
	}
}

func TestWebhookRoutesAreEndpoints(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, p := t.Context(), w.parts
	made, err := api.CreateEndpoint.Do(ctx, w.client, api.EndpointRequest{URL: "http://127.0.0.1:9/x",
		Headers: map[string]string{"X-Key": "s3cret"}, Description: "for the CRM"})
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Second)
	p.queued(t, "shop")
	if _, err := p.Webhooks.Replay(ctx, made.ID, before); err != nil {
		t.Fatal(err)
	}
	off := false
	if _, err := api.UpdateEndpoint.Do(ctx, w.client, api.EndpointRequest{URL: made.URL, Enabled: &off,
		Headers: map[string]string{"X-Key": "******"}}, made.ID); err != nil {
		t.Fatal(err)
	}
	want := api.WebhookRoute{ID: made.ID, Name: "127.0.0.1:9", TargetURL: made.URL, TCount: 1,
		CustomHeaders: []api.CustomHeader{{Key: "X-Key", Value: "******"}}}
	page, err := api.ListWebhookRoutes.Do(ctx, w.client, api.PageQuery{})
	if err != nil {
		t.Fatal(err)
	}
	times := cmpopts.IgnoreFields(api.WebhookRoute{}, "Created", "Updated")
	if diff := cmp.Diff(api.WebhookRoutePage{PageNumbers: api.PageNumbers{Total: 1, Pages: 1},
		Webhooks: []api.WebhookRoute{want}}, page, times); diff != "" {
		t.Error(diff)
	}
	want.Content = &api.WebhookRouteContent{}
	one, err := api.GetWebhookRoute.Do(ctx, w.client, made.ID)
	if diff := cmp.Diff(want, one, times); diff != "" || err != nil {
		t.Error(diff, err)
	}
	_, err = api.GetWebhookRoute.Do(ctx, w.client, "nothing")
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.Code != "WebhookEndpointNotFound" {
		t.Errorf("an unknown route: %v", err)
	}
}
