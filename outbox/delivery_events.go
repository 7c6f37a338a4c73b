package outbox

import (
	"time"

	"github.com/postroom/postroom/api/event"
)

// events are the events of the decision. Their gateway is that of the last relay asked.
func (d *decision) events(c *claim) (changeEvents, error) {
	events := c.envelope.events(d.at)
	add := func(t event.Type, data any, which []int) error {
		return events.add(t, data, which, len(d.status.Log), "")
	}
	about := func(which []int) event.Message {
		m := c.envelope.about(c.id, c.lane, d.gateway, c.envelope.addresses(which))
		m.LocalAddress = d.address
		return m
	}
	if len(d.sent) > 0 {
		m := about(d.sent)
		if err := add(event.MessageSent, event.Sent{Message: m, Response: d.response, Accepted: m.Envelope.To,
			InDoubt: c.mayBeThere()}, d.sent); err != nil {
			return events, err
		}
	}
	if len(d.stopped) > 0 {
		if err := events.suppressed(c.after(*d), d.stopped); err != nil {
			return events, err
		}
	}
	if len(d.lost) > 0 {
		f := event.Failed{Message: about(d.lost), Failure: d.failure(d.lost), Job: d.job(c, time.Time{}),
			Recipients: d.recipients(c, d.lost)}
		f.InDoubt = f.InDoubt || c.mayBeThere() // the final event: an earlier attempt may have delivered
		if d.outcome == failed {
			f.DeadLetter = c.id
		}
		if err := add(event.MessageFailed, f, d.lost); err != nil {
			return events, err
		}
	}
	if d.outcome == delayed {
		e := event.DeliveryError{Message: about(d.left), Failure: d.failure(d.left), Job: d.job(c, d.due)}
		if err := add(event.MessageDeliveryError, e, d.left); err != nil {
			return events, err
		}
	}
	return events, nil
}

// failure is the failure of recipients in an event.
func (d *decision) failure(which []int) event.Failure {
	r := d.last(which)
	f := event.Failure{Error: r.Message, ErrorCode: r.Code, InDoubt: d.doubt}
	if r.smtp != nil {
		f.SMTPCommand = r.smtp.Command
		if r.SMTP != 0 {
			f.SMTPResponse, f.SMTPResponseCode = r.smtp.Line, &r.SMTP
		}
	}
	return f
}

func (d *decision) job(c *claim, next time.Time) event.Job {
	j := event.Job{ID: c.id, AttemptsMade: d.attempts, Attempts: c.max}
	if !next.IsZero() {
		next = next.UTC()
		j.NextAttempt = &next
	}
	return j
}

// recipients are the results of recipients in an event.
func (d *decision) recipients(c *claim, which []int) []event.Recipient {
	out := make([]event.Recipient, len(which))
	for n, i := range which {
		r := d.status.Recipients[i]
		out[n] = event.Recipient{Address: c.envelope.To[i], Status: r.Status, Response: r.Response,
			Attempts: r.Attempts}
	}
	return out
}
