package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// outboxShowCmd shows one message.
type outboxShowCmd struct {
	reachFlags
	ID      string `arg:"" help:"Queue id of the message."`
	Content bool   `help:"Print the message itself, as it goes to the relay."`
}

// Run shows one message: a queued one, one that failed for good, or what is remembered of one that is gone.
func (o *outboxShowCmd) Run(ctx context.Context, con *console) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	if o.Content {
		return o.content(ctx, con, client)
	}
	m, err := api.GetMessage.Do(ctx, client, o.ID)
	f, failed := errors.AsType[*api.Failure](err)
	switch {
	case failed && f.Problem.Details["deadLetter"] != nil:
		var letter api.DeadLetter
		letter, err = api.GetDeadLetter.Do(ctx, client, o.ID)
		m = letter.OutboxMessage
	case failed:
		if e, ok := endingOf(o.ID, f); ok {
			return o.ended(con, e)
		}
	}
	if err != nil {
		return err
	}
	if o.JSON {
		return con.printJSON(m)
	}
	con.message(m, time.Now())
	return nil
}

// content prints the message itself.
func (o *outboxShowCmd) content(ctx context.Context, con *console, client *api.Client) error {
	raw, err := api.MessageContent.Do(ctx, client, o.ID)
	if f, ok := errors.AsType[*api.Failure](err); ok && f.Problem.Details["deadLetter"] != nil {
		var letter api.DeadLetter
		letter, err = api.GetDeadLetter.Do(ctx, client, o.ID)
		raw = letter.Content
	}
	if err != nil {
		return err
	}
	_, err = con.out.Write(raw)
	return err
}

// ended prints what is remembered of a message that is gone.
func (o *outboxShowCmd) ended(con *console, e ending) error {
	if o.JSON {
		return con.printJSON(e)
	}
	con.line("Id", e.QueueID)
	con.line("State", e.State)
	if e.At != nil {
		con.line("Ended", stamp(*e.At, time.Now()))
	}
	con.line("Reply", e.Response)
	con.note("all about it: postroom log show %s", clean(e.QueueID))
	return nil
}

// message prints everything about a message.
func (c *console) message(m api.OutboxMessage, now time.Time) {
	c.line("Id", m.QueueID)
	c.line("State", string(m.State))
	c.line("Account", m.Account)
	c.line("From", orDash(m.Envelope.From))
	c.line("Subject", m.Subject)
	c.line("Message-ID", m.MessageID)
	c.line("Queued", stamp(m.Created, now)+", by "+m.Source)
	if m.Scheduled.Sub(m.Created) > time.Second {
		c.line("Scheduled", stamp(m.Scheduled, now))
	}
	c.line("Attempts", fmt.Sprintf("%d of %d; next: %s", m.AttemptsMade, m.Attempts, next(m.NextAttempt, now)))
	c.line("Lane", string(m.Lane))
	c.line("Tags", strings.Join(m.Tags, ", "))
	c.line("Key", m.IdempotencyKey)
	if m.Gateway != nil {
		c.line("Gateway", *m.Gateway)
	}
	c.line("Waits", m.Reason)
	if e := m.Progress.Error; e != nil {
		c.line("Last error", strings.TrimSpace(e.Code+" "+e.Message))
		if e.AccountTrouble && m.State == api.Failed {
			c.line("", "the account was refused, not the message; once it is in order: postroom dead-letter replay --account "+m.Account+" --account-trouble")
		}
	}
	c.inDoubt(m.InDoubt)
	c.say("")
	c.show(recipientGrid(m.Recipients))
	if len(m.Log) > 0 {
		c.say("")
		c.show(attemptGrid(m.Log))
	}
}

// inDoubt says that nobody knows what came of some attempts.
func (c *console) inDoubt(attempts int) {
	if attempts > 0 {
		c.line("In doubt", fmt.Sprintf("%d attempts died between the end of the message and the reply: it may have been delivered", attempts))
	}
}

// line prints one thing about a message, if there is anything to say.
func (c *console) line(name, value string) {
	if value != "" {
		c.say("%s %s", boldStyle.Width(12).Render(name), clean(value))
	}
}

// stamp is a time, and how far away that is.
func stamp(t, now time.Time) string { return t.Local().Format(time.DateTime) + ", " + moment(t, now) }

func recipientGrid(recipients []api.RecipientStatus) grid {
	g := grid{headings: []string{"recipient", "status", "attempts", "reply"}}
	for _, r := range recipients {
		g.add(r.Address, r.Status, fmt.Sprint(r.Attempts), orDash(r.Response))
	}
	return g
}

func attemptGrid(attempts []api.Attempt) grid {
	g := grid{headings: []string{"attempt", "at", "took", "relay", "tls", "outcome"}}
	for _, a := range attempts {
		took := "died"
		if a.End != nil {
			took = a.End.Sub(a.Start).Round(time.Millisecond).String()
		}
		g.add(fmt.Sprint(a.Number), a.Start.Local().Format(time.DateTime), took, orDash(asked(a)), orDash(a.TLS), outcome(a))
	}
	return g
}

// asked names the relay of an attempt, with the gateway it is known by.
func asked(a api.Attempt) string {
	switch {
	case a.Gateway == "":
		return a.Host
	case a.Host == "":
		return a.Gateway
	}
	return a.Gateway + ", " + a.Host
}

// outcome words what an attempt met.
func outcome(a api.Attempt) string {
	text := strings.TrimSpace(a.Error + " " + a.Line)
	switch {
	case a.InDoubt:
		return "in doubt: " + text
	case a.Held:
		return "not counted, the account was refused: " + text
	}
	return text
}
