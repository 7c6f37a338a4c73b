package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message"
)

// corrected is what a replay does differently, checked.
type corrected struct {
	to      []string // normalized, each once
	gateway *string
	account string
}

// correct checks what a replay is to do differently.
func (d *Desk) correct(ctx context.Context, c api.Corrections) (corrected, error) {
	k := corrected{gateway: c.Gateway, account: c.Account}
	if c.Account != "" {
		if _, err := d.Accounts.Resolve(ctx, c.Account); err != nil {
			return k, err
		}
	}
	if c.Gateway != nil && *c.Gateway != "" {
		if err := d.gatewayExists(ctx, *c.Gateway); err != nil {
			return k, err
		}
	}
	var wrong []fault.Field
	for i, to := range c.To {
		address, err := message.NormalizeAddress(to)
		if err != nil {
			wrong = append(wrong, fault.Field{Key: fmt.Sprintf("to[%d]", i), Message: err.Error()})
			continue
		}
		if !slices.Contains(k.to, address) {
			k.to = append(k.to, address)
		}
	}
	if len(wrong) > 0 {
		return k, fault.InvalidFields(wrong)
	}
	return k, nil
}

// plan is the replay of a dead letter: at once, with its attempts counted anew.
func (k corrected) plan(r row, now time.Time) reopening {
	o := reopening{due: now, max: r.max, gateway: r.gateway, replay: true, to: k.to, account: k.account}
	if k.gateway != nil {
		o.gateway = *k.gateway
	}
	return o
}

// readdress queues a failed message for others than it failed for. Those it failed for stay on record as
// replaced, but for the ones named again; those who have the message are not sent it once more.
func (r row) readdress(to []string) (row, error) {
	known := len(r.envelope.To)
	r.envelope.To = slices.Clone(r.envelope.To)
	r.status.Events = slices.Clone(r.status.Events)
	for i, one := range r.status.Events {
		if one.To == nil { // all that there were so far
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
