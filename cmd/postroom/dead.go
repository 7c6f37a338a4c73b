package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// deadCmd is about messages that failed for good.
type deadCmd struct {
	List   deadListCmd   `cmd:"" default:"withargs" help:"List dead letters, oldest first (the default)."`
	Show   deadShowCmd   `cmd:"" help:"Show one dead letter and its attempts."`
	Replay deadReplayCmd `cmd:"" help:"Send dead letters again, to the recipients that failed."`
	Delete deadDeleteCmd `cmd:"" help:"Forget dead letters and their content."`
}

// deadFlags select dead letters.
type deadFlags struct {
	Account        string `placeholder:"ID" help:"Of this account."`
	AccountTrouble bool   `help:"That failed because the account was refused: its login, token, certificate or sender."`
	Code           string `placeholder:"CODE" help:"That failed with this: EAUTH, EENVELOPE, ECONNECTION…"`
	Tag            string `placeholder:"TAG" help:"With this tag."`
}

// selects says whether a dead letter is meant. Account and tag are seen to by the server.
func (f deadFlags) selects(m api.OutboxMessage) bool {
	e := m.Progress.Error
	return (f.Code == "" || e != nil && e.Code == f.Code) && (!f.AccountTrouble || e != nil && e.AccountTrouble)
}

// deadListCmd lists dead letters.
type deadListCmd struct {
	deadFlags
	Limit int `short:"n" default:"20" help:"Dead letters at most; 0: all."`
	reachFlags
}

// deadList is what is printed for programs.
type deadList struct {
	DeadLetters []api.OutboxMessage `json:"deadLetters"`
	More        bool                `json:"more"` // there are others
}

// Run lists dead letters.
func (d *deadListCmd) Run(ctx context.Context, con *console) error {
	if d.Limit < 0 {
		return usage("--limit: %d is not a number of dead letters; 0 means all", d.Limit)
	}
	client, err := d.client()
	if err != nil {
		return err
	}
	list, err := d.fetch(ctx, client, d.Limit)
	if err != nil {
		return err
	}
	if d.JSON {
		return con.printJSON(list)
	}
	if len(list.DeadLetters) == 0 {
		con.say("no dead letters")
		return nil
	}
	con.show(deadGrid(list.DeadLetters, time.Now()))
	if list.More {
		con.note("there are more; all of them: --limit 0")
	}
	return nil
}

// fetch gets up to limit dead letters; 0: all.
func (f deadFlags) fetch(ctx context.Context, client *api.Client, limit int) (deadList, error) {
	list, q := deadList{DeadLetters: []api.OutboxMessage{}}, api.OutboxQuery{Account: f.Account, Tag: f.Tag, PageSize: maxPage}
	for {
		page, err := api.ListDeadLetters.Do(ctx, client, q)
		if err != nil {
			return list, err
		}
		for _, m := range page.DeadLetters {
			if !f.selects(m) {
				continue
			}
			if limit > 0 && len(list.DeadLetters) == limit {
				list.More = true
				return list, nil
			}
			list.DeadLetters = append(list.DeadLetters, m)
		}
		if page.Cursor == "" {
			return list, nil
		}
		q.Cursor = page.Cursor
	}
}

func deadGrid(letters []api.OutboxMessage, now time.Time) grid {
	g := grid{headings: []string{"id", "account", "to", "subject", "queued", "code", "why"}}
	for _, m := range letters {
		code := ""
		if m.Progress.Error != nil {
			code = m.Progress.Error.Code
		}
		g.add(m.QueueID, m.Account, someOf(m.Envelope.To), clip(m.Subject, 40), moment(m.Created, now), orDash(code), why(m))
	}
	return g
}

// deadShowCmd shows one dead letter.
type deadShowCmd struct {
	reachFlags
	ID      string `arg:"" help:"Queue id of the message."`
	Content bool   `help:"Print the message itself, as it goes to the relay."`
}

// Run shows one dead letter.
func (d *deadShowCmd) Run(ctx context.Context, con *console) error {
	client, err := d.client()
	if err != nil {
		return err
	}
	letter, err := api.GetDeadLetter.Do(ctx, client, d.ID)
	switch {
	case err != nil:
		return err
	case d.Content:
		_, err := con.out.Write(letter.Content)
		return err
	case d.JSON:
		return con.printJSON(letter.OutboxMessage)
	}
	con.message(letter.OutboxMessage, time.Now())
	return nil
}

// deadDeleteCmd forgets dead letters.
type deadDeleteCmd struct {
	reachFlags
	IDs []string `arg:"" name:"id" help:"Queue ids of dead letters."`
	Yes bool     `short:"y" help:"Do not ask."`
}

// Run forgets dead letters.
func (d *deadDeleteCmd) Run(ctx context.Context, con *console) error {
	client, err := d.client()
	if err != nil {
		return err
	}
	if !d.Yes && !con.confirm("Delete %d dead letters? They can't be sent again.", len(d.IDs)) {
		return errors.New("nothing was deleted: say --yes to delete what would be needed to send them again")
	}
	deleted, unknown := 0, []string{}
	for _, id := range d.IDs {
		answer, err := api.DeleteDeadLetter.Do(ctx, client, id)
		switch {
		case refusal(err) != "" || err == nil && !answer.Deleted:
			unknown = append(unknown, id)
		case err != nil:
			return err
		default:
			deleted++
		}
	}
	return con.forgotten(deleted, unknown, d.JSON)
}

// forgotten tells what came of a deletion of dead letters; one that was not there is a failure.
func (c *console) forgotten(deleted int, unknown []string, asJSON bool) error {
	if asJSON {
		if err := c.printJSON(cancelled{Deleted: deleted, Unknown: unknown}); err != nil {
			return err
		}
	} else {
		c.say("deleted %d", deleted)
		for _, id := range unknown {
			c.note("%s is no dead letter", clean(id))
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%w", errReported)
	}
	return nil
}
