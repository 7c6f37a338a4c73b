package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// correct checks corrections. It returns them with normalized addresses, each once.
func (d *Operations) correct(ctx context.Context, c api.Corrections) (api.Corrections, error) {
	if c.Account != "" {
		if _, err := d.Accounts.Resolve(ctx, c.Account); err != nil {
			return c, err
		}
	}
	if c.Gateway != nil && *c.Gateway != "" && !d.confined(c.Bound) { // those of the account's list exist
		if err := d.gatewayExists(ctx, *c.Gateway); err != nil {
			return c, err
		}
	}
	var wrong []fault.Field
	addresses := c.To
	c.To = nil
	for i, to := range addresses {
		address, err := message.NormalizeAddress(to)
		if err != nil {
			wrong = append(wrong, fault.Field{Key: fmt.Sprintf("to[%d]", i), Message: err.Error()})
			continue
		}
		if !slices.Contains(c.To, address) {
			c.To = append(c.To, address)
		}
	}
	if len(wrong) > 0 {
		return c, fault.InvalidFields(wrong)
	}
	return c, nil
}

// replayOf returns the replay of a dead letter: due now, with all its attempts again.
func replayOf(r row, c api.Corrections, now time.Time) reopening {
	o := reopening{due: now, max: r.max, gateway: r.gateway, replay: true, to: c.To, account: c.Account,
		answered: !c.Bound && (c.Account != "" || c.Gateway != nil)}
	if c.Gateway != nil {
		o.gateway = *c.Gateway
	}
	return o
}

// checkPatch returns an error if a message may not be sent through the gateway of a patch.
func (d *Operations) checkPatch(ctx context.Context, r row, p api.OutboxPatch) error {
	if !d.confined(p.Bound) {
		if *p.Gateway == "" {
			return nil
		}
		return d.gatewayExists(ctx, *p.Gateway)
	}
	account, err := d.Accounts.Resolve(ctx, r.envelope.Account)
	if err != nil {
		return err
	}
	return d.checkGateway(account, *p.Gateway)
}

// checkReplay returns Forbidden if the account that sends a message from now on may not: by its gateway, or
// by those whom its header and envelope name. Who hands the message in again answers for all of these.
func (d *Operations) checkReplay(ctx context.Context, r row, o reopening, bound bool) error {
	if !d.confined(bound) {
		return nil
	}
	account, err := d.Accounts.Resolve(ctx, cmp.Or(o.account, r.envelope.Account))
	if err != nil {
		return err
	}
	if err := d.checkGateway(account, o.gateway); err != nil {
		return err
	}
	content, err := d.contentOf(ctx, r)
	if err != nil {
		return err
	}
	return d.checkSenders(account, r.envelope.From, content)
}

// readdress queues a failed message for other recipients than those that failed. Failed recipients that are
// not named again get the status replaced. A recipient that has the message is refused.
func (r row) readdress(to []string) (row, error) {
	known := len(r.envelope.To)
	r.envelope.To = slices.Clone(r.envelope.To)
	r.status.Events = slices.Clone(r.status.Events)
	for i, e := range r.status.Events {
		if e.To == nil { // all recipients so far
			r.status.Events[i].To = everybody(known)
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
			return r, fault.InvalidFields([]fault.Field{
				{Key: fmt.Sprintf("to[%d]", n), Message: "has the message already"}})
		default:
			r.status.Recipients[i].Status = rcptQueued
		}
	}
	return r, nil
}

func ascii(s string) bool { return strings.IndexFunc(s, func(c rune) bool { return c > 127 }) < 0 }
