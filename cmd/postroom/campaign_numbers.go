package main

import (
	"io"
	"time"

	"github.com/postroom/postroom/api"
)

type campaignRecipientsCmd struct {
	ID string `arg:"" help:"ID of the campaign."`
	filter[api.CampaignRecipientQuery]
	CSV   string `name:"csv" placeholder:"FILE" help:"Write all of them to a file, not there yet unless --force is given; - is standard output."`
	Force bool   `help:"Overwrite an existing file."`
	limitFlag
}

func (c *campaignRecipientsCmd) Run(s *session) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	if c.CSV != "" {
		return c.export(s, q)
	}
	q.PageSize = c.pageSize(maxPage)
	found, more, _, err := fetch(s, api.ListCampaignRecipients, q, c.limitFlag, nil, c.ID)
	now := time.Now()
	g := newGrid("subscriber", "address", "state", "known", "message", "attempts", "last attempt", "reply")
	for _, r := range found {
		last := "-"
		if r.Time != nil {
			last = stamp(*r.Time, now)
		}
		g.add(r.Subscriber, orDash(r.Email), r.State, orDash(known(r)), r.QueueID, r.Attempts, last,
			orDash(clip(r.Response, 80)))
	}
	return s.some("recipients", found, more, err, "no recipients", g)
}

func (c *campaignRecipientsCmd) export(s *session, q api.CampaignRecipientQuery) error {
	export := func(w io.Writer) error {
		return api.ExportCampaignRecipients.Do(s, s.client, q, w, c.ID)
	}
	if c.CSV == "-" {
		return export(s.out)
	}
	size, err := s.export(c.CSV, c.Force, export)
	out := struct {
		Bytes int64 `json:"bytes"`
	}{size}
	return s.said(out, err, "the recipients are in %s", c.CSV)
}

// known returns what became known of a recipient after the mail was sent; the last thing only.
func known(r api.CampaignRecipient) string {
	switch {
	case r.Complained:
		return "complained"
	case r.Left:
		return "left"
	case r.Clicked:
		return "clicked"
	case r.Opened:
		return "opened"
	case r.Delivered:
		return "delivered"
	}
	return ""
}

type campaignStatsCmd struct {
	ID string `arg:"" help:"ID of the campaign."`
	Of int    `name:"run" placeholder:"N" help:"Only this run. Default: all runs together, each person once."`
}

func (c *campaignStatsCmd) Run(s *session) error {
	stats, err := api.GetCampaignStats.Do(s, s.client, api.CampaignStatsQuery{Run: c.Of}, c.ID)
	return s.answer(stats, err, func() {
		s.show(statsFacts(stats, time.Now()))
		runs := newGrid("run", "to", "people", "sent", "bounced", "failed", "opened", "clicked")
		for _, r := range stats.Runs {
			runs.add(r.Run, orDash(r.To), r.Audience, r.States.Sent, r.States.Bounced, r.States.Failed, r.Opened,
				r.Clicked)
		}
		if len(stats.Runs) < 2 {
			runs = grid{}
		}
		variants := newGrid("variant", "in the test", "sent", "bounced", "opened", "clicked", "left", "complained")
		for _, v := range stats.Variants {
			variants.add(v.Variant, v.Test, v.States.Sent, v.States.Bounced, v.Opened, v.Clicked, v.Left, v.Complained)
		}
		links := newGrid("clicks", "link")
		for _, l := range stats.Links {
			links.add(l.Clicks, l.URL)
		}
		domains := newGrid("domain", "sent", "bounced", "failed", "opened", "clicked")
		for _, d := range stats.Domains {
			domains.add(d.Domain, d.Sent, d.Bounced, d.Failed, d.Opened, d.Clicked)
		}
		hours := newGrid("hour", "sent", "opens", "clicks")
		for _, h := range stats.Hours {
			hours.add(h.Hour.Local().Format("2006-01-02 15:04"), h.Sent, h.Opens, h.Clicks)
		}
		s.tables(runs, variants, links, domains, hours)
	})
}

func statsFacts(stats api.CampaignStats, now time.Time) grid {
	g := grid{}
	g.add("campaign", stats.Campaign)
	g.add("state", stats.State+noteIf(stats.Counting, ", the audience is being counted"))
	g.add("people", stats.Audience)
	for _, n := range campaignNumbers(stats.States) {
		g.fact(n.state, noteIf(n.n > 0, "%d%s", n.n, share(n.n, stats.Audience)))
	}
	for _, n := range []stateNumber{{"delivered", stats.Delivered}, {"complained", stats.Complained},
		{"left", stats.Left}, {"opened", stats.Opened}, {"opens in all", stats.OpenedTotal},
		{"opened by programs", stats.OpenedBots}, {"clicked", stats.Clicked},
		{"clicks in all", stats.ClickedTotal}, {"clicked by programs", stats.ClickedBots}} {
		g.fact(n.state, noteIf(n.n > 0, "%d", n.n))
	}
	g.fact("winner", stats.Winner)
	g.fact("rate", noteIf(stats.Rate > 0, "%.1f mails a second", stats.Rate))
	for _, at := range []struct {
		name string
		at   *time.Time
	}{{"began", stats.Started}, {"winner is decided", stats.Decides}, {"winner was decided", stats.Decided},
		{"ended", stats.Ended}, {"recounted", stats.Recounted}} {
		if at.at != nil {
			g.add(at.name, stamp(*at.at, now))
		}
	}
	return g
}

// share returns a part of a whole in percent, in parentheses.
func share(part, whole int) string {
	return noteIf(whole > 0, " (%.1f %%)", 100*float64(part)/float64(max(1, whole)))
}
