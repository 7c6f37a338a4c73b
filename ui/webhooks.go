package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/webhooks"
)

// Rows of a page: of deliveries, and of endpoints, accounts or gateways.
const (
	deliveriesPerPage = 50
	endpointsPerPage  = 100
)

// webhooksView is the page of all endpoints.
type webhooksView struct {
	Endpoints []api.Endpoint
	Settings  string // id of the endpoint of the settings; empty: none
	Pager     pager
	Queue     api.QueueStatus
}

func (u webhookPages) webhooks(w http.ResponseWriter, r *http.Request) error {
	page := pageOf(r.URL.Query())
	got, err := u.Webhooks.Endpoints(r.Context(), page, endpointsPerPage)
	if err != nil {
		return err
	}
	view := webhooksView{Endpoints: got.Endpoints}
	view.Pager = pager{Page: page, Pages: got.Pages, Total: got.Total, Size: endpointsPerPage, path: "/webhooks"}
	switch _, err := u.Webhooks.Deliveries(r.Context(), webhooks.SettingsID, 0, 1); {
	case err == nil:
		view.Settings = webhooks.SettingsID
	case !fault.Is(err, fault.NotFound):
		return err
	}
	if view.Queue, err = u.Outbox.QueueStatus(r.Context(), "notify"); err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "webhooks", "Webhooks", view)
}

// endpointView is the page of one endpoint and its deliveries.
type endpointView struct {
	ID         string
	Endpoint   *api.Endpoint // nil: it is of the settings or an account
	Deliveries []api.Delivery
	Pager      pager
	Q          string // query for the messages of the deliveries; empty: all
	Wrong      string // fault of the query
	Partial    bool   // older deliveries were not searched
}

// endpointIDs matches ids of endpoints and deliveries.
var endpointIDs = regexp.MustCompile(`^[A-Za-z0-9_.:@+-]{1,256}$`)

// onEndpoint calls h with the ids of an endpoint and, if the path has one, of a delivery. For who is bound to
// an account there is only the endpoint of that account.
func onEndpoint(h func(w http.ResponseWriter, r *http.Request, id, delivery string) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, delivery := r.PathValue("id"), r.PathValue("delivery")
		if !endpointIDs.MatchString(id) || delivery != "" && !endpointIDs.MatchString(delivery) {
			return fault.New(fault.NotFound, "", "There is no such endpoint or delivery")
		}
		if bound := boundTo(r); bound != "" && id != "account:"+bound {
			return fault.New(fault.NotFound, "", "There is no such endpoint or delivery")
		}
		return h(w, r, id, delivery)
	}
}

func endpointPath(id string) string { return "/webhooks/" + id }

func (u webhookPages) endpoint(w http.ResponseWriter, r *http.Request, id, _ string) error {
	view, title := endpointView{ID: id}, "Endpoint "+id
	switch e, err := u.Webhooks.Endpoint(r.Context(), id); {
	case err == nil:
		view.Endpoint, title = &e, e.URL
	case !fault.Is(err, fault.NotFound):
		return err
	}
	if view.Q = strings.TrimSpace(r.URL.Query().Get("q")); len(view.Q) > longestQuery {
		return fault.New(fault.Invalid, "", "The address is too long")
	}
	page := pageOf(r.URL.Query())
	got, err := u.deliveries(r.Context(), id, view.Q, page)
	if err != nil {
		if view.Wrong = wrongQuery(err); view.Wrong == "" {
			return err
		}
		return u.show(w, r, http.StatusBadRequest, "endpoint", title, view)
	}
	view.Deliveries, view.Partial = got.Deliveries, got.Partial
	view.Pager = pager{Page: page, Pages: got.Pages, Total: got.Total, Size: deliveriesPerPage,
		path: endpointPath(id)}
	if view.Q != "" {
		view.Pager.values = url.Values{"q": {view.Q}}
	}
	return u.show(w, r, http.StatusOK, "endpoint", title, view)
}

// deliveries returns a page of an endpoint's deliveries: all, or those about messages that a query finds.
func (u webhookPages) deliveries(ctx context.Context, id, q string, page int) (api.DeliveryPage, error) {
	if q == "" {
		return u.Webhooks.Deliveries(ctx, id, page, deliveriesPerPage)
	}
	return u.Webhooks.FindDeliveries(ctx, id, q, page, deliveriesPerPage)
}

// testEndpoint sends a test event and shows the result.
func (u webhookPages) testEndpoint(w http.ResponseWriter, r *http.Request, id, _ string) error {
	got, err := u.Webhooks.Test(r.Context(), id)
	switch {
	case err != nil:
		return undone(w, r, endpointPath(id), err)
	case got.Success:
		return done(w, r, endpointPath(id), "The endpoint answered %d within %d ms.", got.StatusCode, got.Latency)
	case got.StatusCode != 0:
		return redirectWith(w, r, endpointPath(id),
			flash{Text: fmt.Sprintf("The endpoint answered %d: %s", got.StatusCode, clip(got.Response, 200)),
				Bad: true})
	}
	return redirectWith(w, r, endpointPath(id), flash{Text: "The endpoint could not be reached: " + got.Error,
		Bad: true})
}

func (u webhookPages) redeliver(w http.ResponseWriter, r *http.Request, id, delivery string) error {
	if _, err := u.Webhooks.Redeliver(r.Context(), id, delivery); err != nil {
		return undone(w, r, endpointPath(id), err)
	}
	return done(w, r, endpointPath(id), "The event is on its way to the endpoint again.")
}
