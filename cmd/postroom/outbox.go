package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// outboxCmd is about queued messages.
type outboxCmd struct {
	List   outboxListCmd   `cmd:"" default:"withargs" help:"List queued messages, oldest first (the default)."`
	Show   outboxShowCmd   `cmd:"" help:"Show one message and its attempts, or how it ended."`
	Retry  outboxRetryCmd  `cmd:"" help:"Attempt delivery now."`
	Replay deadReplayCmd   `cmd:"" help:"Send again what failed for good: the same as dead-letter replay."`
	Cancel outboxCancelCmd `cmd:"" help:"Take messages back."`
	Watch  outboxWatchCmd  `cmd:"" help:"Watch the outbox as it changes."`
}

// filterFlags select messages.
type filterFlags struct {
	State   string `enum:",waiting,active,delayed,paused,failed" default:"" placeholder:"STATE" help:"In this state: waiting, active, delayed, paused or failed."`
	Account string `placeholder:"ID" help:"Of this account."`
	Lane    string `enum:",transactional,bulk" default:"" placeholder:"LANE" help:"Of this lane: transactional or bulk."`
	Tag     string `placeholder:"TAG" help:"With this tag."`
	Search  string `placeholder:"TEXT" help:"With this text in an address or the subject."`
	Since   string `placeholder:"WHEN" help:"Queued since: 2h, or 2030-12-24T08:00:00Z."`
	Until   string `placeholder:"WHEN" help:"Queued before: 2h, or 2030-12-24T08:00:00Z."`
}

// query makes the query that the flags describe.
func (f filterFlags) query(now time.Time) (api.OutboxQuery, error) {
	since, until, err := period(f.Since, f.Until, now)
	return api.OutboxQuery{
		State: api.State(f.State), Account: f.Account, Lane: api.Lane(f.Lane), Tag: f.Tag, Search: f.Search,
		CreatedAfter: since, CreatedBefore: until,
	}, err
}

// period reads the flags since and until. Empty: the zero time.
func period(from, to string, now time.Time) (since, until time.Time, err error) {
	if from != "" {
		if since, err = parseSince(from, now); err != nil {
			return since, until, usage("--since: %v", err)
		}
	}
	if to != "" {
		if until, err = parseSince(to, now); err != nil {
			return since, until, usage("--until: %v", err)
		}
	}
	return since, until, nil
}

// maxPage is the largest page that Postroom gives.
const maxPage = 1000

// outboxListCmd lists messages.
type outboxListCmd struct {
	reachFlags
	filterFlags
	Limit int `short:"n" default:"20" help:"Messages at most; 0: all."`
}

// Run lists messages.
func (o *outboxListCmd) Run(ctx context.Context, con *console) error {
	if o.Limit < 0 {
		return usage("--limit: %d is not a number of messages; 0 means all", o.Limit)
	}
	q, err := o.query(time.Now())
	if err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	list, err := fetch(ctx, client, q, o.Limit)
	if err != nil {
		return err
	}
	if o.JSON {
		return con.printJSON(list)
	}
	if len(list.Messages) == 0 {
		con.say("no messages")
		return nil
	}
	con.show(messageGrid(list.Messages, time.Now()))
	if more := list.Total - len(list.Messages); more > 0 {
		con.note("%d of %d; all of them: --limit 0", len(list.Messages), list.Total)
	}
	return nil
}

// messageList is what is printed for programs.
type messageList struct {
	Total    int                 `json:"total"`
	Messages []api.OutboxMessage `json:"messages"`
}

// fetch gets up to limit messages, in as few pages as it takes; 0: all.
func fetch(ctx context.Context, client *api.Client, q api.OutboxQuery, limit int) (messageList, error) {
	list := messageList{Messages: []api.OutboxMessage{}}
	for {
		q.PageSize = maxPage
		if limit > 0 {
			q.PageSize = min(maxPage, limit-len(list.Messages))
		}
		page, err := api.ListOutbox.Do(ctx, client, q)
		if err != nil {
			return list, err
		}
		list.Total, q.Cursor = page.Total, page.Cursor
		list.Messages = append(list.Messages, page.Messages...)
		if page.Cursor == "" || limit > 0 && len(list.Messages) >= limit {
			return list, nil
		}
	}
}

func messageGrid(messages []api.OutboxMessage, now time.Time) grid {
	g := grid{headings: []string{"id", "state", "to", "subject", "attempts", "next", "why"}}
	for _, m := range messages {
		g.add(m.QueueID, string(m.State), someOf(m.Envelope.To), clip(m.Subject, 40), tries(m.AttemptsMade, m.Attempts), next(m.NextAttempt, now), why(m))
	}
	return g
}

// someOf names the first of some addresses and counts the others.
func someOf(addresses []string) string {
	switch n := len(addresses); n {
	case 0:
		return "-"
	case 1:
		return addresses[0]
	default:
		return fmt.Sprintf("%s +%d", addresses[0], n-1)
	}
}

// tries counts the attempts made of those there may be.
func tries(made, all int) string { return fmt.Sprintf("%d/%d", made, all) }

// next is when the next attempt is due, if one will be made.
func next(at api.TimeOrFalse, now time.Time) string {
	if at.Time == nil {
		return "-"
	}
	if !at.Time.After(now) {
		return "now"
	}
	return moment(*at.Time, now)
}

// why says what a message waits for, or else the last error; and whether it may have arrived all the same.
func why(m api.OutboxMessage) string {
	text := m.Reason
	if text == "" && m.Progress.Error != nil {
		text = m.Progress.Error.Message
	}
	return doubtful(text, m.InDoubt)
}

// doubtful says before a text whether the message may have arrived all the same.
func doubtful(text string, attempts int) string {
	if attempts > 0 {
		text = strings.TrimSuffix("in doubt: "+text, ": ")
	}
	return orDash(clip(text, 60))
}

// clip cuts a text to n characters.
func clip(s string, n int) string {
	r := []rune(clean(s))
	if len(r) <= n {
		return string(r)
	}
	return strings.TrimRight(string(r[:n-1]), " ") + "…"
}
