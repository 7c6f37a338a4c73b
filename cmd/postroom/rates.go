package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
)

// ratesCmd counts what became of mail.
type ratesCmd struct {
	filter[api.RatesQuery]
	Days int `default:"30" help:"Days to go back, up to 400."`
}

func (r *ratesCmd) Run(s *session) error {
	q, err := r.query()
	if err != nil {
		return err
	}
	q.From = time.Now().AddDate(0, 0, -r.Days)
	got, err := api.GetRates.Do(s, s.client, q)
	return s.answer(got, err, func() { s.rates(got) })
}

func (c *console) rates(got api.Rates) {
	if len(got.Rates) == 0 {
		c.line("Rates", "nothing was sent, and nothing became known")
		return
	}
	g := newGrid("time", "name", "sent", "failed", "suppressed", "delivered", "hard", "soft", "blocked",
		"complained", "unsubscribed", "opened", "clicked", "accepted", "bounces", "complaints")
	for _, r := range got.Rates {
		at, name := "–", cmp.Or(r.Name, "–")
		if r.Time != nil {
			at = r.Time.Format("2006-01-02 15:04")
		}
		accepted := strconv.Itoa(r.Accepted)
		if r.Name != "" && r.Accepted == 0 {
			accepted = "–" // it is counted in all and by lane only
		}
		if r.Other {
			name = "(others)"
		}
		g.add(at, name, r.Sent, r.Failed, r.Suppressed, r.Delivered, r.Hard, r.Soft, r.Blocked, r.Complained,
			r.Unsubscribed, r.Opened, r.Clicked, accepted, fmt.Sprintf("%.2f %%", 100*r.BounceRate),
			fmt.Sprintf("%.3f %%", 100*r.ComplaintRate))
	}
	c.show(g)
}
