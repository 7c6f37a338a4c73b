package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

func logVerbs() []verb {
	return []verb{
		{name: "list", help: "List messages, newest first (the default).",
			run: first(api.ListMessages, "messages", logGrid)},
		{name: "show", help: "Show one message: its recipients, its attempts and its events.", run: &logShowCmd{}},
		{name: "events", help: "Show the events of one message, oldest first.", run: show(api.ListMessageEvents,
			eventsGrid)},
		{name: "stats", help: "Count messages of the last hour and the last 24 hours, in total or by account or stream.",
			run: &logStatsCmd{}},
	}
}

func logGrid(messages []api.LoggedMessage, now time.Time) grid {
	g := newGrid("id", "status", "account", "to", "subject", "accepted", "attempts", "last word")
	for _, m := range messages {
		g.add(m.QueueID, m.Stands(), m.Account, someOf(m.Envelope.To), clip(m.Subject, 40), moment(m.Created, now),
			tries(m.AttemptsMade, m.Attempts), lastWord(m))
	}
	return g
}

// lastWord returns why a message waits or was not sent, or the relay's reply if it was. If it came
// back, it returns what the recipient's server said.
func lastWord(m api.LoggedMessage) string {
	if m.Outcome != nil && m.Outcome.Status.IsBad() && m.Outcome.String() != "" {
		return m.Outcome.String()
	}
	var failed string
	if m.Error != nil && m.Status != api.StatusSent {
		failed = m.Error.Message
	}
	// the reason, if there is one, is why the dead letter was deleted
	if m.Status == api.StatusFailed || m.Status == api.StatusDead {
		return doubtful(cmp.Or(failed, m.Reason), m.InDoubt)
	}
	return doubtful(cmp.Or(m.Reason, failed, m.Response), m.InDoubt)
}

type logStatsCmd struct {
	Account string   `placeholder:"ID" help:"Only messages of this account."`
	Lane    api.Lane `enum:",transactional,bulk" default:"" placeholder:"LANE" help:"Only messages of this stream: transactional or bulk."`
	Seconds int      `placeholder:"N" help:"Also count the last N seconds, up to 604800. Above 86400, it counts recipients instead of messages."`
	By      string   `enum:",account,lane" default:"" placeholder:"WHAT" help:"Group by account or lane (stream)."`
}

// counted is the mail of one account, of one lane, or of all.
type counted struct {
	Account string   `json:"account,omitempty"`
	Lane    api.Lane `json:"lane,omitempty"`
	api.Counters
}

func (l *logStatsCmd) Run(s *session) error {
	if l.By == "account" && l.Account != "" || l.By == "lane" && l.Lane != "" {
		return usage("--by %s has only one row with --%s; remove one of them", l.By, l.By)
	}
	chosen, err := l.chosen(s)
	if err != nil {
		return err
	}
	all := make([]counted, len(chosen))
	bar := s.bar(len(chosen), "counting")
	for i, q := range chosen {
		stats, err := api.GetStats.Do(s, s.client, q)
		if err != nil {
			_ = bar.Clear()
			return err
		}
		all[i] = counted{q.Account, q.Lane, stats.Counters}
		_ = bar.Add(1)
	}
	_ = bar.Clear()
	if l.By == "" {
		return s.answer(all[0], nil, func() { s.counted(all[0].Counters, l.Seconds) })
	}
	return s.answer(all, nil, func() { s.show(countedGrid(all, l.By)) })
}

// chosen returns the counters to ask for, one for each row.
func (l *logStatsCmd) chosen(s *session) ([]api.CounterQuery, error) {
	switch l.By {
	case "lane":
		return []api.CounterQuery{{Account: l.Account, Lane: api.Transactional, Seconds: l.Seconds},
			{Account: l.Account, Lane: api.Bulk, Seconds: l.Seconds}}, nil
	case "account":
		accounts, err := all(s, api.ListAccounts, api.PageQuery{PageSize: maxPage})
		queries := make([]api.CounterQuery, len(accounts))
		for i, a := range accounts {
			queries[i] = api.CounterQuery{Account: a.Account.Account, Lane: l.Lane, Seconds: l.Seconds}
		}
		return queries, err
	}
	return []api.CounterQuery{{Account: l.Account, Lane: l.Lane, Seconds: l.Seconds}}, nil
}

// counted prints the counters of one selection, and of a period if seconds is not 0.
func (s *session) counted(n api.Counters, seconds int) {
	g := newGrid("in the last", "accepted", "sent", "failed", "attempts")
	g.add("hour", n.QueuedHour, n.SentHour, n.FailedHour, n.AttemptsHour)
	g.add("24 hours", n.QueuedDay, n.SentDay, n.FailedDay, n.AttemptsDay)
	if seconds > 0 {
		g.add(fmt.Sprintf("%d seconds", seconds), n.MessageQueued, n.MessageSent, n.MessageFailed, "-")
	}
	s.show(g)
	s.say("")
	s.line("Pending", fmt.Sprint(n.Pending))
	s.line("Failed", fmt.Sprintf("%d; %s to replay", n.Failed, plural(n.Dead, "dead letter")))
}

func countedGrid(all []counted, by string) grid {
	g := newGrid(by, "pending", "failed", "dead letters", "sent, hour", "failed, hour", "sent, 24h",
		"failed, 24h")
	for _, n := range all {
		name := n.Account
		if by == "lane" {
			name = string(n.Lane)
		}
		g.add(name, n.Pending, n.Failed, n.Dead, n.SentHour, n.FailedHour, n.SentDay, n.FailedDay)
	}
	return g
}
