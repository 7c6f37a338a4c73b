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
	g := newGrid("endpoint", e.ID)
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
		return "paused until " + moment(e.Resting.Until, now)
	case e.FailingSince != nil:
		return "failing since " + moment(*e.FailingSince, now)
	}
	return "on"
}

// webhookUpdateCmd changes fields of an endpoint.
type webhookUpdateCmd struct {
	ID          string            `arg:"" help:"ID of the endpoint."`
	Endpoint    *string           `name:"to" placeholder:"URL" help:"URL that receives the events. If you change it, give --secret and all headers again."`
	Event       []string          `placeholder:"TYPE" help:"Event types, or * for all."`
	Account     []string          `placeholder:"ID" help:"Accounts, or * for all."`
	Header      map[string]string `mapsep:"none" placeholder:"NAME=VALUE" help:"Headers of every request. Give all of them; ****** keeps a stored value."`
	NoHeaders   bool              `help:"Remove all headers."`
	Secret      *string           `placeholder:"SECRET" help:"New secret: whsec_ and base64. Requests are also signed with the old secret for 24 hours."`
	Rate        *int              `placeholder:"N" help:"Maximum requests per second, or 0 for no limit."`
	On          bool              `xor:"switch" help:"Switch it on."`
	Off         bool              `xor:"switch" help:"Switch it off. Its pending deliveries will be skipped."`
	Description *string           `placeholder:"TEXT" help:"Description."`
}

func (w *webhookUpdateCmd) Run(s *session) error {
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
		return usage("nothing to change: add a flag, for example --on or --event messageSent")
	}
	e, err := api.PatchEndpoint.Do(s, s.client, p, w.ID)
	return s.answer(e, err, func() { s.show(endpointGrid(e, time.Now())) })
}
