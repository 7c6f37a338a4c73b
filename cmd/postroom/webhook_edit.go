package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
)

func endpointGrid(e api.Endpoint, now time.Time) grid {
	g := newGrid("what", "value")
	g.add("id", e.ID)
	g.add("url", e.URL)
	g.add("state", endpointState(e, now))
	if r := e.Resting; r != nil {
		g.add("last failure", fmt.Sprintf("%s (%d failures in a row)", r.Error, r.Failures))
	}
	if e.FailingSince != nil {
		g.add("failing since", moment(*e.FailingSince, now))
	}
	g.add("events", cmp.Or(words(e.Events, " "), "all"))
	g.add("accounts", cmp.Or(words(e.Accounts, " "), "all"))
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		g.add("header", name+"="+e.Headers[name])
	}
	if e.RateLimit > 0 {
		g.add("limit", fmt.Sprintf("%d a second", e.RateLimit))
	}
	if e.OldSecretUntil != nil {
		g.add("an older secret signs until", moment(*e.OldSecretUntil, now))
	}
	g.add("description", orDash(e.Description))
	g.add("deliveries", e.Deliveries)
	return g
}

func endpointState(e api.Endpoint, now time.Time) string {
	switch {
	case e.DisabledReason != "":
		return "off: " + e.DisabledReason
	case !e.Enabled:
		return "off"
	case e.Resting != nil:
		return "rests until " + moment(e.Resting.Until, now)
	case e.FailingSince != nil:
		return "failing since " + moment(*e.FailingSince, now)
	}
	return "on"
}

// webhookEditCmd changes fields of an endpoint.
type webhookEditCmd struct {
	ID          string            `arg:"" help:"Id of the endpoint."`
	Endpoint    *string           `name:"to" placeholder:"URL" help:"Where events are sent. Another URL needs --secret and all headers, too."`
	Event       []string          `placeholder:"TYPE" help:"Event types; *: all."`
	Account     []string          `placeholder:"ID" help:"Accounts; *: all."`
	Header      map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"All headers added to every request; ****** stays as it is."`
	NoHeaders   bool              `help:"Add no headers."`
	Secret      *string           `placeholder:"SECRET" help:"whsec_ and base64. The old one signs, too, for 24 hours."`
	Rate        *int              `placeholder:"N" help:"Requests a second; 0: no limit."`
	On          bool              `xor:"switch" help:"Switch it on."`
	Off         bool              `xor:"switch" help:"Switch it off. What waits for it ends as skipped."`
	Description *string           `placeholder:"TEXT" help:"What it is for."`
}

func (w *webhookEditCmd) Run(s *session) error {
	p := api.EndpointPatch{URL: w.Endpoint, Secret: w.Secret, RateLimit: w.Rate, Description: w.Description}
	if len(w.Event) > 0 {
		p.Events = &w.Event
	}
	if len(w.Account) > 0 {
		if slices.Contains(w.Account, "*") {
			w.Account = []string{}
		}
		p.Accounts = &w.Account
	}
	if len(w.Header) > 0 {
		p.Headers = &w.Header
	} else if w.NoHeaders {
		p.Headers = &map[string]string{}
	}
	if w.On || w.Off {
		p.Enabled = &w.On
	}
	if p == (api.EndpointPatch{}) {
		return usage("say what to change, such as --on or --event messageSent")
	}
	e, err := api.PatchEndpoint.Do(s, s.client, p, w.ID)
	return s.answer(e, err, func() { s.show(endpointGrid(e, time.Now())) })
}
