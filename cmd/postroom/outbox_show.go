package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

type outboxShowCmd struct {
	ID      string `arg:"" help:"Queue ID of the message."`
	Content bool   `help:"Print the message as the relay receives it."`
	dialogueFlag
}

// dialogueFlag is the option of commands that show the attempts of a message.
type dialogueFlag struct {
	Dialogue bool `help:"Print the SMTP dialogue of attempts that failed for some recipients."`
}

// Run shows one message: queued, failed for good, or the result of an ended one.
func (o *outboxShowCmd) Run(s *session) error {
	if o.Content {
		raw, err := api.DownloadMessage.Do(s, s.client, o.ID)
		return s.bytes(raw, err)
	}
	m, err := api.GetMessage.Do(s, s.client, o.ID)
	if isDead(err) {
		var letter api.DeadLetter
		letter, err = api.GetDeadLetter.Do(s, s.client, o.ID)
		m = letter.OutboxMessage
	}
	if e, ok := endingOf(o.ID, err); ok {
		return s.answer(e, nil, func() {
			s.line("Id", e.QueueID)
			s.line("State", e.State)
			if e.At != nil {
				s.line("Ended", stamp(*e.At, time.Now()))
			}
			s.line("Reply", e.Response)
			s.note("all about it: postroom log show %s", clean(e.QueueID))
		})
	}
	return s.answer(m, err, func() { s.message(m, o.dialogueFlag, time.Now()) })
}

// isDead reports whether a message is not found because it is a dead letter.
func isDead(err error) bool {
	f, ok := errors.AsType[*api.Failure](err)
	return ok && f.Problem.Details["deadLetter"] != nil
}

// message prints everything about a message.
func (c *console) message(m api.OutboxMessage, said dialogueFlag, now time.Time) {
	c.line("Id", m.QueueID)
	c.line("State", string(m.State))
	c.heads(messageHead{m.Account, m.Envelope.From, m.Subject, m.MessageID, m.Source, m.Created, m.Scheduled},
		"Queued", now)
	c.line("Attempts", fmt.Sprintf("%d of %d; next: %s", m.AttemptsMade, m.Attempts, next(m.NextAttempt, now)))
	c.line("Lane", string(m.Lane))
	c.line("Priority", string(m.Priority))
	c.line("Trace", m.TraceID)
	c.line("Tags", strings.Join(m.Tags, ", "))
	c.line("Key", m.IdempotencyKey)
	c.line("Gateway", *cmp.Or(m.Gateway, new("")))
	c.line("Waits", m.Reason)
	c.line("To and Cc", map[string]string{"corrected": "name the new recipients; signed again",
		"unchanged": "still name the former recipients: the message was submitted raw"}[m.Header])
	if e := m.Progress.Error; e != nil {
		c.line("Last error", strings.TrimSpace(e.Code+" "+e.Message))
		c.explained(e.Explanation)
		if e.AccountTrouble && m.State == api.Failed {
			c.line("", "the account was refused, not the message; once it is in order: postroom dead-letter replay --account "+m.Account+" --account-trouble")
		}
	}
	c.inDoubt(m.InDoubt)
	c.tables(recipientGrid(m.Recipients), attemptGrid(m.Log))
	c.dialogues(m.Log, said)
}

// dialogues prints the SMTP dialogues of attempts, or how to see them.
func (c *console) dialogues(log []api.Attempt, said dialogueFlag) {
	n := 0
	for _, a := range log {
		if len(a.Dialogue) == 0 {
			continue
		}
		if n++; !said.Dialogue {
			continue
		}
		c.say("")
		head := strings.TrimSuffix(fmt.Sprintf("Attempt %d, %s", a.Number, clean(asked(a))), ", ")
		c.say("%s", boldStyle.Render(head))
		for _, l := range a.Dialogue {
			l.Text = clean(l.Text)
			c.say("%s", l)
		}
	}
	if n > 0 && !said.Dialogue {
		c.note("the SMTP dialogue of %s is kept: --dialogue", plural(n, "attempt"))
	}
}

// messageHead is the fields that a message has in the outbox and in the log.
type messageHead struct {
	account, from, subject, messageID, source string
	created, scheduled                        time.Time
}

func (c *console) heads(m messageHead, accepted string, now time.Time) {
	c.line("Account", m.account)
	c.line("From", orDash(m.from))
	c.line("Subject", m.subject)
	c.line("Message-ID", m.messageID)
	c.line(accepted, stamp(m.created, now)+", by "+m.source)
	if m.scheduled.Sub(m.created) > time.Second {
		c.line("Scheduled", stamp(m.scheduled, now))
	}
}

// tables prints the tables that have rows.
func (c *console) tables(all ...grid) {
	for _, g := range all {
		if len(g.rows) > 0 {
			c.say("")
			c.show(g)
		}
	}
}

// inDoubt prints that the result of some attempts is not known.
func (c *console) inDoubt(attempts int) {
	if attempts > 0 {
		c.line("In doubt", fmt.Sprintf(
			"%s died between the end of the message and the reply: it may have been delivered",
			plural(attempts, "attempt")))
	}
}

// line prints a name and its value, if there is one.
func (c *console) line(name, value string) {
	if value != "" {
		c.say("%s %s", boldStyle.Width(12).Render(name), clean(value))
	}
}

func stamp(t, now time.Time) string { return t.Local().Format(time.DateTime) + ", " + moment(t, now) }

func recipientGrid(recipients []api.RecipientStatus) grid {
	g := newGrid("recipient", "status", "attempts", "reply")
	for _, r := range recipients {
		g.add(r.Address, r.Stands(), r.Attempts, orDash(r.Response))
	}
	return g
}

func attemptGrid(attempts []api.Attempt) grid {
	g := newGrid("attempt", "at", "took", "relay", "tls", "outcome")
	for _, a := range attempts {
		took := "died"
		if a.End != nil {
			took = a.End.Sub(a.Start).Round(time.Millisecond).String()
		}
		g.add(a.Number, a.Start.Local().Format(time.DateTime), took, orDash(asked(a)), orDash(a.TLS), outcome(a))
	}
	return g
}

// asked returns the relay of an attempt, with its gateway.
func asked(a api.Attempt) string {
	switch {
	case a.Gateway == "":
		return a.Host
	case a.Host == "":
		return a.Gateway
	}
	return a.Gateway + ", " + a.Host
}

// outcome describes the result of an attempt.
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
