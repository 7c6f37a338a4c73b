package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/smtpsend"
)

// A message with more recipients than one transaction takes goes out in several. What each came to is
// recorded before the next begins, so that a crash in between mails nobody twice.

// progress records what a transaction delivered while recipients are left for a further one, and keeps trying
// while Redis is away.
func (d *Delivery) progress(ctx context.Context, c *claim, done []smtpsend.RecipientResult) error {
	now := d.clock.Now()
	st, sent, response := c.delivered(done)
	if len(sent) == 0 {
		return nil
	}
	about := c.envelope.about(c.id, c.lane, c.gateway, c.envelope.addresses(sent))
	events := changeEvents{account: c.envelope.Account, at: now}
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
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := d.progressed(ctx, c, packed, events.lines[0])
		if err == nil {
			break
		}
		if !fault.Is(err, fault.Unavailable) || d.clock.Now().Sub(now) > recordPatience {
			return err
		}
		d.log.WarnContext(ctx, "transaction not recorded yet", "message_id", c.id, "error", err)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
	c.status = st
	d.metrics.recipients.WithLabelValues(rcptSent).Add(float64(len(sent)))
	d.mail.sent(ctx, c.id, c.attempts+1, about.Envelope.To, response, d.clock.Now().Sub(c.began))
	return nil
}

func (d *Delivery) progressed(ctx context.Context, c *claim, st, line string) error {
	ok, err := progressScript.Run(ctx, d.DB.Shared(), []string{d.keys.message(c.partition, c.id)},
		progressArgs{ID: c.id, Fence: c.fence, Transaction: c.transactions, Status: st, Event: line})
	if err != nil {
		return away(err, "record a transaction of message "+c.id)
	}
	if !ok {
		return errLeaseLost
	}
	return nil
}

// delivered is the status with those recipients sent that a transaction delivered, and who they are.
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
