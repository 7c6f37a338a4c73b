package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

type logShowCmd struct {
	ID         string `arg:"" help:"Queue ID of the message."`
	Content    bool   `xor:"view" help:"Print the message as the relay receives it."`
	Headers    bool   `xor:"view" help:"Print its header fields, decoded."`
	Parts      bool   `xor:"view" help:"List its texts and attachments."`
	Deliveries bool   `xor:"view" help:"List the webhook deliveries of its events."`
	Part       int    `xor:"view" placeholder:"N" help:"Print the text or attachment with this number, decoded."`
	dialogueFlag
}

// Run shows one message, queued or ended, or its content for as long as that is stored.
func (l *logShowCmd) Run(s *session) error {
	switch {
	case l.Content:
		raw, err := api.DownloadMessage.Do(s, s.client, l.ID)
		return s.bytes(raw, err)
	case l.Part != 0:
		raw, err := api.DownloadMessagePart.Do(s, s.client, l.ID, l.Part)
		return s.bytes(raw, err)
	case l.Deliveries:
		found, err := api.ListMessageDeliveries.Do(s, s.client, l.ID)
		return s.answer(found, err, func() { s.show(deliveriesAbout(found)) })
	case l.Parts, l.Headers:
		found, err := api.GetMessageParts.Do(s, s.client, l.ID)
		return s.answer(found, err, func() { s.show(l.grid(found)) })
	}
	m, err := api.GetLoggedMessage.Do(s, s.client, l.ID)
	if err != nil || s.json {
		return s.answer(m, err, nil)
	}
	story, err := api.ListMessageEvents.Do(s, s.client, l.ID)
	return s.answer(m, err, func() { s.logged(m, story, l.dialogueFlag, time.Now()) })
}

// bytes prints a file as it is.
func (s *session) bytes(raw []byte, err error) error {
	if err == nil {
		_, err = s.out.Write(raw)
	}
	return err
}

func (l *logShowCmd) grid(m api.MessageParts) grid {
	if l.Headers {
		g := newGrid("field", "value")
		for _, f := range m.Headers {
			g.add(f.Name, f.Value)
		}
		return g
	}
	g := newGrid("part", "type", "name", "size", "kind")
	for _, p := range m.Parts {
		kind := "text"
		if p.File {
			kind = "attachment"
		}
		g.add(p.Part, p.ContentType, orDash(p.Filename), p.Size, kind)
	}
	return g
}

func deliveriesAbout(m api.MessageDeliveries) grid {
	g := newGrid("event", "endpoint", "delivery", "status", "attempts", "answer")
	for _, d := range m.Deliveries {
		g.add(d.Event, d.Endpoint, d.ID, d.Status, d.Attempts, answered(d, time.Now()))
	}
	return g
}

// logged prints everything about a message of the log.
func (c *console) logged(m api.LoggedMessage, story api.MessageEvents, said dialogueFlag, now time.Time) {
	c.line("Id", m.QueueID)
	c.line("Status", string(m.Status))
	if o := m.Outcome; o != nil {
		c.line("Outcome", fmt.Sprintf("%s, %s: %s", o.Status, stamp(o.Date, now), someOf(o.Recipients)))
		c.line("", details(o.Details))
		c.explained(o.Explanation)
	}
	c.heads(messageHead{m.Account, m.Envelope.From, m.Subject, m.MessageID, m.Source, m.Created, m.Scheduled},
		"Accepted", now)
	if m.DeliverBy != nil {
		c.line("Deliver by", stamp(*m.DeliverBy, now))
	}
	if m.Ended != nil {
		c.line("Ended", stamp(*m.Ended, now))
	}
	if m.ContentUntil != nil {
		c.line("Content", "kept until "+stamp(*m.ContentUntil, now))
	}
	attempts := fmt.Sprintf("%d of %d", m.AttemptsMade, m.Attempts)
	if m.NextAttempt.Time != nil {
		attempts += "; next: " + next(m.NextAttempt, now)
	}
	c.line("Attempts", attempts)
	if m.Size > 0 { // else it is filled in when it is sent
		c.line("Size", plural(m.Size, "byte"))
	}
	c.line("Lane", string(m.Lane))
	c.line("Priority", string(m.Priority))
	c.line("Trace", m.TraceID)
	c.line("Tags", strings.Join(m.Tags, ", "))
	c.line("Metadata", string(m.Metadata))
	c.line("Key", m.IdempotencyKey)
	c.line("Gateway", *cmp.Or(m.Gateway, new("")))
	c.line("Reply", m.Response)
	c.line("Reason", m.Reason)
	if e := m.Error; e != nil {
		c.line("Last error", strings.TrimSpace(e.Code+" "+e.Message))
		c.explained(e.Explanation)
	}
	c.inDoubt(m.InDoubt)
	if m.Status == api.StatusDead {
		c.line("", "it can be sent again: postroom dead-letter replay "+m.QueueID)
	}
	c.tables(recipientGrid(m.Recipients), attemptGrid(m.Log), eventGrid(story.Events))
	c.dialogues(m.Log, said)
}

func eventsGrid(e api.MessageEvents, _ time.Time) grid { return eventGrid(e.Events) }

func eventGrid(events []api.MessageEvent) grid {
	g := newGrid("at", "event", "recipients", "result")
	for _, e := range events {
		g.add(e.Date.Local().Format("2006-01-02 15:04:05.000"), e.Event, someOf(e.Recipients), orDash(happened(e)))
	}
	return g
}

// happened describes an event beside its name.
func happened(e api.MessageEvent) string {
	var words []string
	if e.Attempt != nil {
		words = append(words, strings.TrimSuffix(fmt.Sprintf("attempt %d, %s", e.Attempt.Number, asked(*e.Attempt)),
			", "))
	}
	switch {
	case e.Details != nil:
		words = append(words, details(*e.Details))
	case e.Response != "":
		words = append(words, e.Response)
	case e.Until != nil:
		words = append(words, e.Reason, "until "+e.Until.Local().Format("2006-01-02 15:04:05.000"))
	case e.Reason != "":
		words = append(words, e.Reason)
	case e.Attempt != nil && outcome(*e.Attempt) != "":
		words = append(words, outcome(*e.Attempt))
	}
	return strings.Join(words, ": ")
}

// details describes an event after a relay accepted the message.
func details(d api.EventDetails) string {
	words := slices.DeleteFunc([]string{d.BounceType, d.FeedbackType, d.Reason, d.Diagnostic, d.URL, d.ListID},
		func(w string) bool { return w == "" })
	if d.Diagnostic == "" && d.Status != "" {
		words = append(words, d.Status)
	}
	if d.Bot {
		words = append(words, "by a program: "+d.BotReason)
	}
	if d.Source != "" {
		words = append(words, "reported by "+d.Source)
	}
	return strings.Join(words, ", ")
}
