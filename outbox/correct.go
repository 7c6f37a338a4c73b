package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message"
)

// correct checks what a replay is to do differently, and adds it to the plan.
func (b *Outbox) correct(ctx context.Context, o *reopening, c api.Corrections) error {
	if c.Account != "" {
		if _, err := b.Accounts.Account(ctx, c.Account); err != nil {
			return err
		}
		o.account = c.Account
	}
	if c.Gateway != nil {
		if *c.Gateway != "" {
			if err := b.Accounts.Gateway(ctx, *c.Gateway); err != nil {
				return err
			}
		}
		o.gateway = *c.Gateway
	}
	var wrong []fault.Field
	for i, to := range c.To {
		address, err := message.NormalizeAddress(to)
		if err != nil {
			wrong = append(wrong, fault.Field{Key: fmt.Sprintf("to[%d]", i), Message: err.Error()})
			continue
		}
		if !slices.Contains(o.to, address) {
			o.to = append(o.to, address)
		}
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	return nil
}

// readdress queues a failed message for others than it failed for. Those it failed for stay on record as replaced, but for the ones named
// again; those who have the message are not sent it once more.
func (r row) readdress(to []string) (row, error) {
	known := len(r.envelope.To)
	r.envelope.To = slices.Clone(r.envelope.To)
	r.status.Told = slices.Clone(r.status.Told)
	for i, one := range r.status.Told {
		if one.To == nil { // all that there were so far
			r.status.Told[i].To = everybody(known)
		}
	}
	for _, i := range r.status.having(rcptFailed) {
		r.status.Recipients[i].Status = rcptReplaced
	}
	for n, address := range to {
		i := slices.Index(r.envelope.To[:known], address)
		switch {
		case i < 0:
			r.envelope.To = append(r.envelope.To, address)
			r.envelope.Added++
			r.envelope.UTF8 = r.envelope.UTF8 || !ascii(address)
			r.status.Recipients = append(r.status.Recipients, recipient{Status: rcptQueued})
		case r.status.Recipients[i].Status == rcptSent:
			return r, fault.InvalidFields([]fault.Field{{Key: fmt.Sprintf("to[%d]", n), Message: "has the message already"}})
		default:
			r.status.Recipients[i].Status = rcptQueued
		}
	}
	return r, nil
}

func ascii(s string) bool { return strings.IndexFunc(s, func(c rune) bool { return c > 127 }) < 0 }
