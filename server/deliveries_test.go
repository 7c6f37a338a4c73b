package server

import (
	"errors"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

func TestDeliveriesAreFoundByTheSearch(t *testing.T) {
	w := setup(t)
	got, err := w.client.FindDeliveries(t.Context(), "e1", "to:ann subject:\"your invoice\"", 2, 10)
	if err != nil || !got.Partial || got.Page != 2 || len(got.Deliveries) != 1 || got.Deliveries[0].ID != "to:ann subject:\"your invoice\"" || got.Deliveries[0].Endpoint != "e1" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := w.client.FindDeliveries(t.Context(), "e1", "  ", 0, 0); err != nil || got.Partial {
		t.Errorf("a blank query lists all: %+v, %v", got, err)
	}
	w.parts.failWith(fault.New(fault.NotFound, "SearchOff", "There is no search index: the setting documents.store is none"))
	_, err = w.client.FindDeliveries(t.Context(), "e1", "x", 0, 0)
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.Code != "SearchOff" {
		t.Errorf("without an index: %v", err)
	}
}
