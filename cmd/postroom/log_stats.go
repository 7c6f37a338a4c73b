package main

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/api"
)

// logStatsCmd counts mail.
type logStatsCmd struct {
	reachFlags
	Account string `placeholder:"ID" help:"Only the mail of this account."`
	Lane    string `enum:",transactional,bulk" default:"" placeholder:"LANE" help:"Only the mail of this lane: transactional or bulk."`
	By      string `enum:",account,lane" default:"" placeholder:"WHAT" help:"A row for each account or lane: account or lane."`
}

// counted is the mail of one account, of one lane, or of all.
type counted struct {
	Account string `json:"account,omitempty"`
	Lane    string `json:"lane,omitempty"`
	api.Counters
}

// Run counts mail.
func (l *logStatsCmd) Run(ctx context.Context, con *console) error {
	if l.By == "account" && l.Account != "" || l.By == "lane" && l.Lane != "" {
		return usage("--by %s: of one there is nothing to tell apart; leave out --%s", l.By, l.By)
	}
	client, err := l.client()
	if err != nil {
		return err
	}
	chosen, err := l.chosen(ctx, client)
	if err != nil {
		return err
	}
	all := make([]counted, len(chosen))
	step := con.bar(len(chosen), "counting")
	for i, q := range chosen {
		stats, err := api.GetStats.Do(ctx, client, q)
		if err != nil {
			step(0)
			return err
		}
		all[i] = counted{q.Account, string(q.Lane), stats.Counters}
		step(1)
	}
	step(0)
	switch {
	case l.JSON && l.By == "":
		return con.printJSON(all[0])
	case l.JSON:
		return con.printJSON(all)
	case l.By == "":
		con.counted(all[0].Counters)
		return nil
	}
	con.show(countedGrid(all, l.By))
	return nil
}

// chosen are the counters to ask for, one for each row.
func (l *logStatsCmd) chosen(ctx context.Context, client *api.Client) ([]api.CounterQuery, error) {
	q := api.CounterQuery{Account: l.Account, Lane: api.Lane(l.Lane)}
	switch l.By {
	case "lane":
		return []api.CounterQuery{{Account: q.Account, Lane: api.Transactional}, {Account: q.Account, Lane: api.Bulk}}, nil
	case "account":
		accounts, err := allAccounts(ctx, client)
		queries := make([]api.CounterQuery, len(accounts))
		for i, a := range accounts {
			queries[i] = api.CounterQuery{Account: a.Account.Account, Lane: q.Lane}
		}
		return queries, err
	}
	return []api.CounterQuery{q}, nil
}

// counted prints the counters of one selection.
func (c *console) counted(n api.Counters) {
	g := grid{headings: []string{"in the last", "accepted", "sent", "failed", "attempts"}}
	g.add("hour", fmt.Sprint(n.QueuedHour), fmt.Sprint(n.SentHour), fmt.Sprint(n.FailedHour), fmt.Sprint(n.AttemptsHour))
	g.add("24 hours", fmt.Sprint(n.QueuedDay), fmt.Sprint(n.SentDay), fmt.Sprint(n.FailedDay), fmt.Sprint(n.AttemptsDay))
	c.show(g)
	c.say("")
	c.line("Pending", fmt.Sprint(n.Pending))
	c.line("Failed", fmt.Sprintf("%d, of which %d can be sent again", n.Failed, n.Dead))
}

func countedGrid(all []counted, by string) grid {
	g := grid{headings: []string{by, "pending", "failed", "dead", "sent, hour", "failed, hour", "sent, 24h", "failed, 24h"}}
	for _, n := range all {
		name := n.Account
		if by == "lane" {
			name = n.Lane
		}
		g.add(name, fmt.Sprint(n.Pending), fmt.Sprint(n.Failed), fmt.Sprint(n.Dead), fmt.Sprint(n.SentHour), fmt.Sprint(n.FailedHour), fmt.Sprint(n.SentDay), fmt.Sprint(n.FailedDay))
	}
	return g
}
