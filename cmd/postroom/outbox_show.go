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

// Run shows one message: a queued one, or one that failed for good.
func (o *outboxShowCmd) Run(ctx context.Context, con *console) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	if o.Content {
		raw, err := client.Content(ctx, o.ID)
		if err != nil {
			return err
		}
		_, err = con.out.Write(raw)
		return err
	}
	m, err := client.Message(ctx, o.ID)
	if f, ok := errors.AsType[*api.Failure](err); ok && f.Problem.Code == codeFailed {
		m, err = failedMessage(ctx, client, o.ID)
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

// message prints everything about a message.
func (c *console) message(m api.OutboxMessage, now time.Time) {
	line := func(name, value string) {
		if value != "" {
			c.say("%s %s", boldStyle.Width(12).Render(name), clean(value))
		}
	}
	line("Id", m.QueueID)
	line("State", string(m.State))
	line("Account", m.Account)
	line("From", orDash(m.Envelope.From))
	line("Subject", m.Subject)
	line("Message-ID", m.MessageID)
	line("Queued", m.Created.Local().Format(time.DateTime)+", "+moment(m.Created, now)+", by "+m.Source)
	if m.Scheduled.Sub(m.Created) > time.Second {
		line("Scheduled", m.Scheduled.Local().Format(time.DateTime)+", "+moment(m.Scheduled, now))
	}
	line("Attempts", fmt.Sprintf("%d of %d; next: %s", m.AttemptsMade, m.Attempts, nextAttempt(m, now)))
	line("Lane", string(m.Lane))
	line("Tags", strings.Join(m.Tags, ", "))
	line("Key", m.IdempotencyKey)
	if m.Progress.Error != nil {
		line("Last error", m.Progress.Error.Message)
	}
	if m.InDoubt > 0 {
		line("In doubt", fmt.Sprintf("%d attempts died between the end of the message and the reply: it may have been delivered", m.InDoubt))
	}
	c.say("")
	c.show(recipientGrid(m))
	if len(m.Log) > 0 {
		c.say("")
		c.show(attemptGrid(m))
	}
}

func recipientGrid(m api.OutboxMessage) grid {
	g := grid{headings: []string{"recipient", "status", "attempts", "reply"}}
	for _, r := range m.Recipients {
		g.add(r.Address, r.Status, fmt.Sprint(r.Attempts), orDash(r.Response))
	}
	return g
}

func attemptGrid(m api.OutboxMessage) grid {
	g := grid{headings: []string{"attempt", "at", "took", "relay", "tls", "outcome"}}
	for _, a := range m.Log {
		took := "died"
		if a.End != nil {
			took = a.End.Sub(a.Start).Round(time.Millisecond).String()
		}
		g.add(fmt.Sprint(a.Number), a.Start.Local().Format(time.DateTime), took, orDash(a.Host), orDash(a.TLS), strings.TrimSpace(a.Error+" "+a.Line))
	}
	return g
}
