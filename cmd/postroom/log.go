package main

import (
	"cmp"
	"context"
	"time"

	"github.com/postroom/postroom/api"
)

// logCmd is about the email log: every message of the last weeks, queued or ended.
type logCmd struct {
	List   logListCmd   `cmd:"" default:"withargs" help:"List messages, newest first (the default)."`
	Show   logShowCmd   `cmd:"" help:"Show one message: its recipients, its attempts and what happened to it."`
	Events logEventsCmd `cmd:"" help:"Show what happened to one message, oldest event first."`
	Stats  logStatsCmd  `cmd:"" help:"Count the mail of the last hour and the last 24 hours, of everybody or of an account or a lane."`
}

// logFlags select messages of the log.
type logFlags struct {
	Status  string `enum:",queued,sending,sent,failed,cancelled,suppressed,dead" default:"" placeholder:"STATUS" help:"That stand so: queued, sending, sent, failed, dead (failed, and can be sent again), cancelled or suppressed."`
	Account string `placeholder:"ID" help:"Of this account."`
	Lane    string `enum:",transactional,bulk" default:"" placeholder:"LANE" help:"Of this lane: transactional or bulk."`
	Tag     string `placeholder:"TAG" help:"With this tag."`
	Search  string `placeholder:"TEXT" help:"With this text in an address or the subject, or with this Message-ID or idempotency key."`
	Since   string `placeholder:"WHEN" help:"Accepted since: 2h, or 2030-12-24T08:00:00Z."`
	Until   string `placeholder:"WHEN" help:"Accepted before: 2h, or 2030-12-24T08:00:00Z."`
}

// query makes the query that the flags describe.
func (f logFlags) query(now time.Time) (api.LogQuery, error) {
	since, until, err := period(f.Since, f.Until, now)
	return api.LogQuery{
		Status: api.MessageStatus(f.Status), Account: f.Account, Lane: api.Lane(f.Lane), Tag: f.Tag, Search: f.Search,
		CreatedAfter: since, CreatedBefore: until,
	}, err
}

// logListCmd lists messages of the log.
type logListCmd struct {
	reachFlags
	logFlags
	Limit int `short:"n" default:"20" help:"Messages at most; 0: all."`
}

// logList is what is printed for programs.
type logList struct {
	Messages []api.LoggedMessage `json:"messages"`
	More     bool                `json:"more"` // there are others
}

// Run lists messages.
func (l *logListCmd) Run(ctx context.Context, con *console) error {
	if l.Limit < 0 {
		return usage("--limit: %d is not a number of messages; 0 means all", l.Limit)
	}
	q, err := l.query(time.Now())
	if err != nil {
		return err
	}
	client, err := l.client()
	if err != nil {
		return err
	}
	list, err := fetchLog(ctx, client, q, l.Limit)
	if err != nil {
		return err
	}
	if l.JSON {
		return con.printJSON(list)
	}
	if len(list.Messages) == 0 {
		con.say("no messages")
		return nil
	}
	con.show(logGrid(list.Messages, time.Now()))
	if list.More {
		con.note("there are older ones; all of them: --limit 0")
	}
	return nil
}

// fetchLog gets up to limit messages; 0: all. A page may come short, or empty, and still not be the last: Postroom looks at so many
// messages at a time.
func fetchLog(ctx context.Context, client *api.Client, q api.LogQuery, limit int) (logList, error) {
	list := logList{Messages: []api.LoggedMessage{}}
	for {
		q.PageSize = maxPage
		if limit > 0 {
			q.PageSize = min(maxPage, limit-len(list.Messages))
		}
		page, err := api.ListMessages.Do(ctx, client, q)
		if err != nil {
			return list, err
		}
		q.Cursor = page.Cursor
		list.Messages = append(list.Messages, page.Messages...)
		if list.More = page.Cursor != ""; !list.More || limit > 0 && len(list.Messages) >= limit {
			return list, nil
		}
	}
}

func logGrid(messages []api.LoggedMessage, now time.Time) grid {
	g := grid{headings: []string{"id", "status", "account", "to", "subject", "accepted", "attempts", "last word"}}
	for _, m := range messages {
		g.add(m.QueueID, string(m.Status), m.Account, someOf(m.Envelope.To), clip(m.Subject, 40), moment(m.Created, now), tries(m.AttemptsMade, m.Attempts), lastWord(m))
	}
	return g
}

// lastWord is why a message waits or was not sent, or what the relay said when it was.
func lastWord(m api.LoggedMessage) string {
	var failed string
	if m.Error != nil && m.Status != api.StatusSent {
		failed = m.Error.Message
	}
	if m.Status == api.StatusFailed || m.Status == api.StatusDead { // the reason, if there is one, is why the dead letter was deleted
		return doubtful(cmp.Or(failed, m.Reason), m.InDoubt)
	}
	return doubtful(cmp.Or(m.Reason, failed, m.Response), m.InDoubt)
}
