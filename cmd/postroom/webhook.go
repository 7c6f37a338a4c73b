package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

func webhookVerbs() []verb {
	return []verb{
		{name: "list", help: "List endpoints (the default).",
			run: list(api.ListEndpoints, "no endpoints; to add one: postroom webhook add URL", endpointsGrid)},
		{name: "add", help: "Add an endpoint. Postroom shows its secret only once.", run: &webhookAddCmd{}},
		{name: "show", help: "Show an endpoint and its state.",
			run: show(api.GetEndpoint, endpointGrid)},
		{name: "update", help: "Change an endpoint.", run: &webhookUpdateCmd{}},
		{name: "delete", help: "Delete an endpoint.",
			run: &deleteCmd[api.Deleted]{route: api.DeleteEndpoint, what: "endpoint"}},
		{name: "test", help: "Send a test event, and show the endpoint's response.", run: &webhookTestCmd{}},
		{name: "deliveries", help: "List an endpoint's recent deliveries, newest first.",
			run: &webhookDeliveriesCmd{filter: filterOf[api.DeliveryQuery]()}},
	}
}

func endpointsGrid(list []api.Endpoint, now time.Time) grid {
	g := newGrid("id", "url", "events", "accounts", "deliveries", "state")
	for _, e := range list {
		g.add(e.ID, e.URL, cmp.Or(words(e.Events, " "), "all"), cmp.Or(words(e.Accounts, " "), "all"), e.Deliveries,
			endpointState(e, now))
	}
	return g
}

type webhookAddCmd struct {
	Endpoint    string            `arg:"" name:"url" help:"Where events are sent, such as https://shop.example.com/hooks."`
	Event       []string          `placeholder:"TYPE" help:"Event types, such as messageSent,messageFailed. Default: all."`
	Account     []string          `placeholder:"ID" help:"Accounts. Default: all."`
	Header      map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"A header added to every request; may be repeated."`
	Secret      string            `placeholder:"SECRET" help:"Secret that signs, whsec_ and base64. Default: one is made."`
	Rate        int               `placeholder:"N" help:"Requests a second. Default: no limit."`
	Description string            `placeholder:"TEXT" help:"What it is for."`
}

// Run adds an endpoint and prints its secret.
func (w *webhookAddCmd) Run(s *session) error {
	e, err := api.CreateEndpoint.Do(s, s.client, api.EndpointRequest{
		URL: w.Endpoint, Events: w.Event, Accounts: w.Account, Headers: w.Header, Secret: w.Secret,
		RateLimit: w.Rate, Description: w.Description,
	})
	return s.answer(e, err, func() {
		s.note("endpoint %s; verify signatures with this secret, shown only this once:", e.ID)
		s.say("%s", e.Secret)
	})
}

// webhookTestCmd sends a test event. An endpoint that does not take it is a failure.
type webhookTestCmd struct {
	ID    string `arg:"" help:"ID of the endpoint."`
	Event string `placeholder:"TYPE" help:"Send a sample of this type, such as messageBounce, with test true in its data. Default: webhookTest."`
}

func (w *webhookTestCmd) Run(s *session) error {
	a, err := api.TestEndpoint.Do(s, s.client, api.EndpointTest{Event: w.Event}, w.ID)
	if err != nil {
		return err
	}
	return s.done(a, !a.Success, func() {
		switch {
		case a.Success:
			s.say("taken: %d after %d ms", a.StatusCode, a.Latency)
		case a.StatusCode > 0:
			s.note("refused: %d after %d ms%s", a.StatusCode, a.Latency, colon(clip(a.Response, 200)))
		default:
			s.note("not delivered%s", colon(a.Error))
		}
	})
}

type webhookDeliveriesCmd struct {
	ID string `arg:"" help:"ID of the endpoint."`
	filter[api.DeliveryQuery]
	Limit int `short:"n" default:"20" help:"Maximum deliveries to print, 1 to 1000."`
}

func (w *webhookDeliveriesCmd) Run(s *session) error {
	if w.Limit < 1 || w.Limit > maxPage {
		return usage("--limit: %d is not from 1 to %d", w.Limit, maxPage)
	}
	q, err := w.query()
	if err != nil {
		return err
	}
	q.PageSize = w.Limit
	page, err := api.ListDeliveries.Do(s, s.client, q, w.ID)
	return s.answer(page, err, func() {
		g, now := newGrid("at", "id", "event", "message", "status", "attempts", "answer", "took"), time.Now()
		for _, d := range page.Deliveries {
			g.add(moment(d.Created, now), d.ID, d.Event, orDash(d.QueueID), d.Status, d.Attempts, answered(d, now),
				fmt.Sprintf("%d ms", d.Latency))
		}
		s.show(g)
		if page.Partial {
			s.note("the newest 2,000 deliveries were looked at; there are older ones")
		}
	})
}

// answered returns the last answer to a delivery in short, and whether it waits for its endpoint.
func answered(d api.Delivery, now time.Time) string {
	says := clip(d.Error, 60)
	if d.StatusCode > 0 {
		says = fmt.Sprint(d.StatusCode)
	}
	if d.WaitsUntil != nil {
		says = strings.TrimPrefix(says+"; waits for the endpoint, next: "+next(d.NextAttempt, now), "; ")
	}
	return orDash(says)
}
