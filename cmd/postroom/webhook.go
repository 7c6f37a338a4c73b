package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// webhookCmd is about endpoints, to which events are sent.
type webhookCmd struct {
	List       webhookListCmd       `cmd:"" default:"withargs" help:"List endpoints (the default)."`
	Add        webhookAddCmd        `cmd:"" help:"Add an endpoint. Its secret is shown this once."`
	Delete     webhookDeleteCmd     `cmd:"" help:"Delete an endpoint."`
	Test       webhookTestCmd       `cmd:"" help:"Send a test event now and show what the endpoint answers."`
	Deliveries webhookDeliveriesCmd `cmd:"" help:"Show what was sent to an endpoint lately, newest first."`
}

// webhookListCmd lists endpoints.
type webhookListCmd struct{ reachFlags }

// Run lists endpoints.
func (w *webhookListCmd) Run(ctx context.Context, con *console) error {
	client, err := w.client()
	if err != nil {
		return err
	}
	list, err := pages(func(page int) ([]api.Endpoint, int, error) {
		p, err := api.ListEndpoints.Do(ctx, client, api.PageQuery{Page: page, PageSize: maxPage})
		return p.Endpoints, p.Pages, err
	})
	if err != nil {
		return err
	}
	if w.JSON {
		return con.printJSON(list)
	}
	if len(list) == 0 {
		con.say("no endpoints; to add one: postroom webhook add URL")
		return nil
	}
	g := grid{headings: []string{"id", "url", "events", "accounts", "state"}}
	for _, e := range list {
		g.add(e.ID, e.URL, orAll(e.Events), orAll(e.Accounts), endpointState(e, time.Now()))
	}
	con.show(g)
	return nil
}

func orAll(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, " ")
}

func endpointState(e api.Endpoint, now time.Time) string {
	switch {
	case !e.Enabled && e.DisabledReason != "":
		return "off: " + e.DisabledReason
	case !e.Enabled:
		return "off"
	case e.FailingSince != nil:
		return "failing since " + moment(*e.FailingSince, now)
	}
	return "on"
}

// webhookAddCmd adds an endpoint.
type webhookAddCmd struct {
	reachFlags
	Endpoint    string            `arg:"" name:"url" help:"Where events are sent, such as https://shop.example.com/hooks."`
	Event       []string          `placeholder:"TYPE" help:"Event types, such as messageSent,messageFailed. Default: all."`
	Account     []string          `placeholder:"ID" help:"Accounts. Default: all."`
	Header      map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"A header added to every request; as often as you like."`
	Secret      string            `placeholder:"SECRET" help:"Secret that signs, whsec_ and base64. Default: one is made."`
	Description string            `placeholder:"TEXT" help:"What it is for."`
}

// Run adds an endpoint and prints its secret.
func (w *webhookAddCmd) Run(ctx context.Context, con *console) error {
	client, err := w.client()
	if err != nil {
		return err
	}
	e, err := api.CreateEndpoint.Do(ctx, client, api.EndpointRequest{
		URL: w.Endpoint, Events: w.Event, Accounts: w.Account, Headers: w.Header, Secret: w.Secret, Description: w.Description,
	})
	if err != nil {
		return err
	}
	if w.JSON {
		return con.printJSON(e)
	}
	con.note("endpoint %s; verify signatures with this secret, shown this once:", e.ID)
	con.say("%s", e.Secret)
	return nil
}

// webhookDeleteCmd deletes an endpoint.
type webhookDeleteCmd struct {
	reachFlags
	ID string `arg:"" help:"Id of the endpoint."`
}

// Run deletes an endpoint.
func (w *webhookDeleteCmd) Run(ctx context.Context, con *console) error {
	client, err := w.client()
	if err != nil {
		return err
	}
	answer, err := api.DeleteEndpoint.Do(ctx, client, w.ID)
	if err != nil {
		return err
	}
	return con.deleted(w.JSON, "endpoint", w.ID, answer)
}

// webhookTestCmd sends a test event.
type webhookTestCmd struct {
	reachFlags
	ID string `arg:"" help:"Id of the endpoint."`
}

// Run sends a test event. An endpoint that does not take it is a failure.
func (w *webhookTestCmd) Run(ctx context.Context, con *console) error {
	client, err := w.client()
	if err != nil {
		return err
	}
	answer, err := api.TestEndpoint.Do(ctx, client, w.ID)
	if err != nil {
		return err
	}
	switch {
	case w.JSON:
		if err := con.printJSON(answer); err != nil {
			return err
		}
	case answer.Success:
		con.say("taken: %d after %d ms", answer.StatusCode, answer.Latency)
	case answer.StatusCode > 0:
		con.note("refused: %d after %d ms%s", answer.StatusCode, answer.Latency, colon(clip(answer.Response, 200)))
	default:
		con.note("not delivered%s", colon(answer.Error))
	}
	if !answer.Success {
		return errReported
	}
	return nil
}

// webhookDeliveriesCmd shows deliveries.
type webhookDeliveriesCmd struct {
	reachFlags
	ID     string `arg:"" help:"Id of the endpoint."`
	Search string `placeholder:"QUERY" help:"Only deliveries about messages that this finds, as for postroom search: 'invoice to:example.com'."`
	Limit  int    `short:"n" default:"20" help:"Deliveries at most, 1 to 1000."`
}

// Run shows deliveries.
func (w *webhookDeliveriesCmd) Run(ctx context.Context, con *console) error {
	if w.Limit < 1 || w.Limit > maxPage {
		return usage("--limit: %d is not from 1 to %d", w.Limit, maxPage)
	}
	client, err := w.client()
	if err != nil {
		return err
	}
	page, err := w.fetch(ctx, client)
	if err != nil {
		return err
	}
	if w.JSON {
		return con.printJSON(page)
	}
	g, now := grid{headings: []string{"at", "event", "message", "status", "attempts", "answer", "took"}}, time.Now()
	for _, d := range page.Deliveries {
		answer := d.Error
		if d.StatusCode > 0 {
			answer = fmt.Sprint(d.StatusCode)
		}
		g.add(moment(d.Created, now), d.Event, orDash(d.QueueID), d.Status, fmt.Sprint(d.Attempts), orDash(clip(answer, 60)), fmt.Sprintf("%d ms", d.Latency))
	}
	con.show(g)
	if page.Partial {
		con.note("the newest 2,000 deliveries were looked at; there are older ones")
	}
	return nil
}

// fetch gets the deliveries, all or those that were asked for.
func (w *webhookDeliveriesCmd) fetch(ctx context.Context, client *api.Client) (api.DeliveryPage, error) {
	if w.Search != "" {
		return api.ListDeliveries.Do(ctx, client, api.DeliveryQuery{Q: w.Search, PageSize: w.Limit}, w.ID)
	}
	return api.ListDeliveries.Do(ctx, client, api.DeliveryQuery{PageSize: w.Limit}, w.ID)
}
