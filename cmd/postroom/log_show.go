package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// logShowCmd shows one message of the log.
type logShowCmd struct {
	reachFlags
	ID string `arg:"" help:"Queue id of the message."`
}

// Run shows one message, queued or ended.
func (l *logShowCmd) Run(ctx context.Context, con *console) error {
	client, err := l.client()
	if err != nil {
		return err
	}
	m, err := api.GetLoggedMessage.Do(ctx, client, l.ID)
	if err != nil {
		return err
	}
	if l.JSON {
		return con.printJSON(m)
	}
	story, err := api.ListMessageEvents.Do(ctx, client, l.ID)
	if err != nil {
		return err
	}
	con.logged(m, story, time.Now())
	return nil
}

// logged prints everything about a message of the log.
func (c *console) logged(m api.LoggedMessage, story api.MessageEvents, now time.Time) {
	c.line("Id", m.QueueID)
	c.line("Status", string(m.Status))
	c.line("Account", m.Account)
	c.line("From", orDash(m.Envelope.From))
	c.line("Subject", m.Subject)
	c.line("Message-ID", m.MessageID)
	c.line("Accepted", stamp(m.Created, now)+", by "+m.Source)
	if m.Scheduled.Sub(m.Created) > time.Second {
		c.line("Scheduled", stamp(m.Scheduled, now))
	}
	if m.DeliverBy != nil {
		c.line("Deliver by", stamp(*m.DeliverBy, now))
	}
	if m.Ended != nil {
		c.line("Ended", stamp(*m.Ended, now))
	}
	attempts := fmt.Sprintf("%d of %d", m.AttemptsMade, m.Attempts)
	if m.NextAttempt.Time != nil {
		attempts += "; next: " + next(m.NextAttempt, now)
	}
	c.line("Attempts", attempts)
	c.line("Size", fmt.Sprintf("%d bytes", m.Size))
	c.line("Lane", string(m.Lane))
	c.line("Tags", strings.Join(m.Tags, ", "))
	c.line("Metadata", string(m.Metadata))
	c.line("Key", m.IdempotencyKey)
	if m.Gateway != nil {
		c.line("Gateway", *m.Gateway)
	}
	c.line("Reply", m.Response)
	c.line("Reason", m.Reason)
	if e := m.Error; e != nil {
		c.line("Last error", strings.TrimSpace(e.Code+" "+e.Message))
	}
	c.inDoubt(m.InDoubt)
	if m.Status == api.StatusDead {
		c.line("", "it can be sent again: postroom dead-letter replay "+m.QueueID)
	}
	c.say("")
	c.show(recipientGrid(m.Recipients))
	if len(m.Log) > 0 {
		c.say("")
		c.show(attemptGrid(m.Log))
	}
	if len(story.Events) > 0 {
		c.say("")
		c.show(eventGrid(story.Events))
	}
}

// logEventsCmd shows what happened to a message.
type logEventsCmd struct {
	reachFlags
	ID string `arg:"" help:"Queue id of the message."`
}

// Run shows the events of a message.
func (l *logEventsCmd) Run(ctx context.Context, con *console) error {
	client, err := l.client()
	if err != nil {
		return err
	}
	story, err := api.ListMessageEvents.Do(ctx, client, l.ID)
	if err != nil {
		return err
	}
	if l.JSON {
		return con.printJSON(story)
	}
	con.show(eventGrid(story.Events))
	return nil
}

func eventGrid(events []api.MessageEvent) grid {
	g := grid{headings: []string{"at", "event", "recipients", "what came of it"}}
	for _, e := range events {
		g.add(e.Date.Local().Format("2006-01-02 15:04:05.000"), e.Event, someOf(e.Recipients), orDash(happened(e)))
	}
	return g
}

// happened words what is known of an event beside its name.
func happened(e api.MessageEvent) string {
	var words []string
	if e.Attempt != nil {
		words = append(words, strings.TrimSuffix(fmt.Sprintf("attempt %d, %s", e.Attempt.Number, asked(*e.Attempt)), ", "))
	}
	switch {
	case e.Details != nil:
		words = append(words, details(*e.Details))
	case e.Response != "":
		words = append(words, e.Response)
	case e.Reason != "":
		words = append(words, e.Reason)
	case e.Attempt != nil && outcome(*e.Attempt) != "":
		words = append(words, outcome(*e.Attempt))
	}
	return strings.Join(words, ": ")
}

// details words what became known after a relay took the message.
func details(d api.EventDetails) string {
	var words []string
	for _, w := range []string{d.BounceType, d.FeedbackType, d.Reason, d.Diagnostic, d.URL, d.ListID} {
		if w != "" {
			words = append(words, w)
		}
	}
	if d.Diagnostic == "" && d.Status != "" {
		words = append(words, d.Status)
	}
	if d.Bot {
		words = append(words, "by a program: "+d.BotReason)
	}
	if d.Source != "" {
		words = append(words, "told by "+d.Source)
	}
	return strings.Join(words, ", ")
}
