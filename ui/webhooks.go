package ui

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/webhooks"
)

// Rows of a page: of deliveries, and of endpoints, accounts or gateways.
const (
	deliveriesPerPage = 50
	endpointsPerPage  = 100
)

// webhooksView is the page of all endpoints.
type webhooksView struct {
	Endpoints []endpointRow
	Settings  string // ID of the settings' endpoint; empty: they have none
	Pager     pager
	Queue     api.QueueStatus
}

func (u *UI) webhooks(w http.ResponseWriter, r *http.Request) error {
	page := pageOf(r.URL.Query())
	got, err := u.Webhooks.Endpoints(r.Context(), page, endpointsPerPage)
	if err != nil {
		return err
	}
	var view webhooksView
	if view.Endpoints, err = u.endpointRows(r.Context(), got.Endpoints); err != nil {
		return err
	}
	view.Pager = pager{got.PageNumbers, endpointsPerPage, "/webhooks", nil}
	switch _, err := u.Webhooks.Deliveries(r.Context(), webhooks.SettingsID, 0, 1); {
	case err == nil:
		view.Settings = webhooks.SettingsID
	case !fault.Is(err, fault.NotFound):
		return err
	}
	if view.Queue, err = u.Outbox.Queues.QueueStatus(r.Context(), "notify"); err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "webhooks", "Webhooks", view)
}

type endpointView struct {
	ID         string
	Endpoint   *api.Endpoint // nil: it is of the settings or an account
	Deliveries []api.Delivery
	Pager      pager
	Query      api.DeliveryQuery
	Wrong      string // why the query is invalid
	Hours      int    // period of the numbers
	Stats      api.EndpointStats
	Off        string                   // why the endpoint of the settings or of an account is off
	Rest       *api.EndpointRest        // nil: it isn't paused
	Replay     *api.EndpointReplayState // the latest replay; nil: none within a week
	Secret     string                   // new secret, which is shown only once
	Types      []event.Type
	Statuses   []string
	Overlaps   []overlap
	Partial    bool // older deliveries were not searched
}

// endpointIDs matches ids of endpoints and deliveries.
var endpointIDs = regexp.MustCompile(`^[A-Za-z0-9_.:@+-]{1,256}$`)

// onEndpoint calls h with the IDs of an endpoint and, if the path has one, of a delivery. A caller who is
// bound to an account finds only its endpoint.
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

// Any reports whether the list of deliveries is filtered.
func (v endpointView) Any() bool {
	return v.Query.Q != "" || v.Query.Status != "" || v.Query.Event != ""
}

// Periods are the choices of how far back the numbers go, in hours.
func (endpointView) Periods() []int { return []int{24, 168, 720} }

func (u *UI) endpoint(w http.ResponseWriter, r *http.Request, id, _ string) error {
	return u.showEndpoint(w, r, endpointView{ID: id})
}

// showEndpoint completes a page of an endpoint.
func (u *UI) showEndpoint(w http.ResponseWriter, r *http.Request, view endpointView) error {
	id, in := view.ID, r.URL.Query()
	title := "Endpoint " + id
	view.Types, view.Statuses, view.Overlaps = event.Types(), webhooks.Statuses(), overlaps
	if view.Hours, _ = strconv.Atoi(in.Get("hours")); !slices.Contains(view.Periods(), view.Hours) {
		view.Hours = 24
	}
	switch e, err := u.Webhooks.Endpoint(r.Context(), id); {
	case err == nil:
		view.Endpoint, title = &e, e.URL
	case !fault.Is(err, fault.NotFound):
		return err
	}
	if err := u.health(r, &view); err != nil {
		return err
	}
	page := pageOf(in)
	view.Query = api.DeliveryQuery{Q: strings.TrimSpace(in.Get("q")), Status: in.Get("status"),
		Event: in.Get("event"), Page: page, PageSize: deliveriesPerPage}
	if len(view.Query.Q) > longestQuery {
		return fault.New(fault.Invalid, "", "The address is too long")
	}
	got, err := u.Webhooks.FindDeliveries(r.Context(), id, view.Query)
	if err != nil {
		if view.Wrong = wrongQuery(err); view.Wrong == "" && fault.Is(err, fault.Invalid) {
			view.Wrong = strings.TrimSuffix(sentence(err), ".")
		}
		if view.Wrong == "" {
			return err
		}
		return u.show(w, r, http.StatusBadRequest, "endpoint", title, view)
	}
	view.Deliveries, view.Partial = got.Deliveries, got.Partial
	view.Pager = pager{got.PageNumbers, deliveriesPerPage, endpointPath(id), nil}
	view.Pager.values = values(map[string]string{"q": view.Query.Q, "status": view.Query.Status,
		"event": view.Query.Event, "hours": in.Get("hours")})
	return u.show(w, r, http.StatusOK, "endpoint", title, view)
}

// health adds an endpoint's numbers, its pause and its latest replay.
func (u *UI) health(r *http.Request, view *endpointView) error {
	var err error
	if view.Stats, err = u.Webhooks.Stats(r.Context(), view.ID, view.Hours); err != nil {
		return err
	}
	if view.Rest, err = u.Webhooks.Resting(r.Context(), view.ID); err != nil {
		return err
	}
	if view.Off, err = u.Webhooks.Off(r.Context(), view.ID); err != nil {
		return err
	}
	switch replay, err := u.Webhooks.ReplayState(r.Context(), view.ID); {
	case err == nil:
		view.Replay = &replay
	case !fault.Is(err, fault.NotFound):
		return err
	}
	return nil
}

// testEndpoint sends a test event and shows the result.
func (u *UI) testEndpoint(w http.ResponseWriter, r *http.Request, id, _ string) error {
	got, err := u.Webhooks.Test(r.Context(), id, r.PostForm.Get("event"))
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
	return redirectWith(w, r, endpointPath(id), flash{Text: "Postroom couldn't reach the endpoint: " + got.Error,
		Bad: true})
}

func (u *UI) redeliver(w http.ResponseWriter, r *http.Request, id, delivery string) error {
	_, err := u.Webhooks.Redeliver(r.Context(), id, delivery)
	return told(w, r, endpointPath(id), endpointPath(id), err,
		"The event will be delivered again.")
}
