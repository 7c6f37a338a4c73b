package server

import (
	"errors"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

func TestDeliveriesAreFoundByTheSearch(t *testing.T) {
	t.Parallel()
	w := setup(t)
	got, err := api.ListDeliveries.Do(t.Context(), w.client, api.DeliveryQuery{
		Q: "to:ann subject:\"your invoice\"", Page: 2, PageSize: 10}, "e1")
	if err != nil || !got.Partial || got.Page != 2 || len(got.Deliveries) != 1 ||
		got.Deliveries[0].ID != "to:ann subject:\"your invoice\"" || got.Deliveries[0].Endpoint != "e1" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := api.ListDeliveries.Do(t.Context(), w.client, api.DeliveryQuery{Q: "  "}, "e1"); err != nil ||
		got.Partial {
		t.Errorf("a blank query lists all: %+v, %v", got, err)
	}
	w.parts.failWith(fault.New(fault.NotFound, "SearchOff",
		"There is no search index: the setting documents.store is none"))
	_, err = api.ListDeliveries.Do(t.Context(), w.client, api.DeliveryQuery{Q: "x"}, "e1")
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.Code != "SearchOff" {
		t.Errorf("without an index: %v", err)
	}
}
