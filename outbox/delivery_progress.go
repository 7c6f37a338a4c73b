package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/smtpsend"
)

// progress records the result of a transaction, if the message needs more of them for its other recipients.
// So a crash between two transactions sends nobody the message twice.
func (d *Delivery) progress(ctx context.Context, c *claim, done []smtpsend.RecipientResult) error {
	now := d.clock.Now()
	st, sent, response := c.delivered(done)
	if len(sent) == 0 {
		return nil
	}
	about := c.about(sent)
	events := c.envelope.events(now)
	err := events.add(event.MessageSent, event.Sent{
		Message: about, Response: response, Accepted: about.Envelope.To, InDoubt: c.mayBeThere(),
	}, sent, len(st.Log)+1, "")
	if err != nil {
		return err
	}
	st = events.remember(st)
	packed, err := d.jsons.pack(c.id, st)
	if err != nil {
		return err
	}
	c.transactions++
	args := progressArgs{ID: c.id, Fence: c.fence, Transaction: c.transactions, Status: packed,
		Event: events.lines[0]}
	err = d.persist(ctx, c, func() error {
		ok, err := run(ctx, d.store, progressScript, c.partition, c.id, args)
		if err == nil && !ok {
			err = lease.ErrLost
		}
		return err
	})
	if err != nil {
		return err
	}
	c.status = st
	d.metrics.recipients.WithLabelValues(rcptSent).Add(float64(len(sent)))
	d.mail.sent(ctx, c.id, c.attempts+1, about.Envelope.To, response, d.clock.Now().Sub(c.began))
	return nil
}

// delivered returns the status after a transaction, the recipients that it delivered to, and the relay's
// reply.
func (c *claim) delivered(done []smtpsend.RecipientResult) (st status, sent []int, response string) {
	st = c.status
	st.Recipients = slices.Clone(st.Recipients)
	got := make(map[string]string, len(done))
	for _, r := range done {
		if r.Err == nil {
			got[r.Address] = r.Response
		}
	}
	for _, i := range c.status.having(rcptQueued) {
		if said, ok := got[c.envelope.To[i]]; ok {
			r := &st.Recipients[i]
			r.Status, r.Response, response = rcptSent, said, said
			r.Attempts++
			sent = append(sent, i)
		}
	}
	return st, sent, response
}

// recordTimeout is how long a result waits for Redis before its worker continues with other messages.
const recordTimeout = 10 * time.Minute

// persist repeats a write while Redis is unavailable: a 250 that was read must not be lost.
func (d *Delivery) persist(ctx context.Context, c *claim, write func() error) error {
	return lease.Persist(ctx, d.log, "message "+c.id, recordTimeout, write)
}
