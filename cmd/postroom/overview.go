package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend/replies"
)

// overviewCmd says whether mail flows and what is wrong.
type overviewCmd struct {
	Account string `placeholder:"ID" help:"Only this account. Defaults to the token's account, else all."`
	Days    int    `enum:"1,7,30" default:"1" help:"Period in days: 1, 7 or 30."`
}

func (c *overviewCmd) Run(s *session) error {
	got, err := api.GetOverview.Do(s, s.client, api.OverviewQuery{Account: c.Account, Days: c.Days})
	return s.answer(got, err, func() { s.overview(got, time.Now()) })
}

func (c *console) overview(o api.Overview, now time.Time) {
	c.say("%s", o.Flow.Sentence)
	for _, a := range o.Alerts {
		c.say("ALERT %s: %s", clean(strings.TrimSpace(a.Alert.Alert+" "+a.Queue)), clean(a.Text))
		c.steps(a.Do)
	}
	for _, t := range o.Troubles {
		c.say("TROUBLE %s %s is %s: %s", t.Kind, clean(t.ID), t.State, clean(cmp.Or(t.Text, "no error is known")))
		c.steps(t.Do)
	}
	if o.More > 0 {
		c.note("%d more accounts, gateways or endpoints have problems", o.More)
	}
	c.tables(overviewNow(o, now), overviewPeriod(o), overviewReasons(o))
	if o.Failures.Total > o.Failures.Counted {
		c.note("the reasons cover the newest %d of %d failed messages", o.Failures.Counted,
			o.Failures.Total)
	}
}

func (c *console) steps(steps []api.WhyStep) {
	for _, step := range steps {
		c.say("    %s: %s", step.Text, clean(step.Command))
	}
}

// overviewNow lists what is in the outbox.
func overviewNow(o api.Overview, now time.Time) grid {
	f, oldest := o.Flow, "-"
	if f.Oldest != nil {
		oldest = moment(f.Oldest.Since, now)
	}
	p50, p95 := "-", "-"
	if f.Relay != nil {
		p50, p95 = seconds(f.Relay.P50), seconds(f.Relay.P95)
	}
	g := newGrid("waiting", "active", "scheduled", "delayed", "paused", "failed", "oldest due", "to relay p50",
		"p95")
	g.add(f.Waiting, f.Active, f.Scheduled, f.Delayed, f.Paused, f.Dead, oldest, p50, p95)
	return g
}

func overviewPeriod(o api.Overview) grid {
	g := newGrid("days", "accepted", "sent", "failed", "bounced", "bounces", "complaints")
	t := o.Total
	row := []any{o.Days, t.Accepted, t.Sent, t.Failed, t.Hard + t.Soft + t.Blocked}
	for _, r := range o.Rates {
		row = append(row, fmt.Sprintf("%.2f %% (%s)", 100*r.Value, rateStates[r.State]))
	}
	g.add(row...)
	return g
}

var rateStates = map[string]string{"good": "good", "few": "too few to judge", "high": "high",
	"over": "over the limit"}

func overviewReasons(o api.Overview) grid {
	g := newGrid("failed", "why", "reply", "newest")
	for _, r := range o.Failures.Reasons {
		g.add(r.Messages, replies.Explain(r.Text).Title, r.Text, r.QueueID)
	}
	return g
}
