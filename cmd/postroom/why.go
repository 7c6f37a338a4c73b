package main

import (
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// whyCmd says why mail did not arrive.
type whyCmd struct {
	Address string `arg:"" help:"The address, for example ann@example.com."`
	Message string `short:"m" placeholder:"ID" help:"Only this message, by queue ID or Message-ID."`
	Account string `placeholder:"ID" help:"Only messages of this account. Defaults to the token's account, else all."`
}

func (c *whyCmd) Run(s *session) error {
	found, err := api.WhyTo.Do(s, s.client, api.WhyQuery{Message: c.Message, Account: c.Account}, c.Address)
	return s.answer(found, err, func() { s.why(found, time.Now()) })
}

// arrivals are the answers in words.
var arrivals = map[string]string{api.ArrivedYes: "arrived", api.ArrivedNo: "did not arrive",
	api.ArrivedNotYet: "not yet", api.ArrivedUnknown: "not known"}

func (c *console) why(found api.Why, now time.Time) {
	for i, f := range found.Findings {
		if i == 0 {
			c.say("%s: %s", arrivals[found.Arrived], clean(f.Text))
		} else {
			c.say("- %s", clean(f.Text))
		}
		if e := f.Explanation; e != nil {
			c.say("    %s. %s", e.Title, e.Cause)
			c.say("    %s", e.Remedy)
		}
		for _, step := range f.Do {
			c.say("    %s: %s", step.Text, clean(step.Command))
		}
	}
	for _, u := range found.Unasked {
		c.note("the source %q could not be asked: %s; this is the answer of the others", u.Source, clean(u.Error))
	}
	if found.Partial {
		c.note("the email log is longer than what one question reads: older messages may be missing")
	}
	c.tables(whyMessages(found, now), whySuppressions(found, now), whyPlaces(found))
}

func whyMessages(found api.Why, now time.Time) grid {
	g := newGrid("message", "account", "for the address", "subject", "accepted", "last event")
	for _, m := range found.Messages {
		last := "-"
		if n := len(m.Events); n > 0 {
			last = m.Events[n-1].Event
		}
		g.add(m.QueueID, m.Account, m.Recipient.Stands(), clip(clean(m.Subject), 40), moment(m.Created, now), last)
	}
	return g
}

func whySuppressions(found api.Why, now time.Time) grid {
	g := newGrid("suppression", "account", "list", "domain", "since")
	for _, s := range found.Suppressions {
		g.add(s.Reason+noteIf(s.Expired, " (expired)"), orDash(s.Account), orDash(s.List), orDash(s.Domain),
			moment(s.Created, now))
	}
	return g
}

// whyPlaces lists where else the address is known.
func whyPlaces(found api.Why) grid {
	g := newGrid("where", "account", "what", "state")
	for _, s := range found.Subscribers {
		g.add("subscriber", s.Account, s.ID, "on "+plural(len(s.Lists), "list"))
		for _, l := range s.Lists {
			g.add("list", s.Account, l.ListID, l.State)
		}
	}
	for _, one := range found.Campaigns {
		g.add("campaign", "-", one.Campaign, one.State)
	}
	for _, r := range found.Digests {
		waiting := 0
		for _, n := range r.Waiting {
			waiting += n
		}
		g.add("digest reader", r.Account, clean(r.Recipient), fmt.Sprintf("%d waiting", waiting))
	}
	for _, d := range found.Deliveries {
		g.add("webhook", "-", d.Event+" "+d.QueueID, d.Status)
	}
	return g
}
