package outbox

import (
	"context"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// stopsNow returns the suppressed recipients directly before an attempt, so that the latest unsubscribe
// counts. If begin.lua found none at most clearedFor ago, the suppressions are not asked. A campaign has
// asked them, and its mark fails if somebody was suppressed since.
func (d *Delivery) stopsNow(ctx context.Context, c *claim) (map[int]*suppression.Entry, error) {
	if c.unrecorded() || c.cleared && d.clock.now().Sub(c.asked) < clearedFor {
		return nil, nil
	}
	return d.stops(ctx, c.envelope, c.lane, c.status.having(rcptQueued))
}

// clearedFor is how long the answer of begin.lua counts, from the moment before the call: suppressions may be
// added while the answer is on its way. Nearly all attempts reach their relay within two milliseconds.
const clearedFor = 250 * time.Millisecond

// beginKeys are the KEYS of begin.lua.
func (d *Delivery) beginKeys(partition int, id string) []string {
	keys := []string{d.keys.message(partition, id)}
	if d.Suppressions != nil && d.Suppressions.VersionKey() != "" {
		keys = append(keys, d.Suppressions.VersionKey())
	}
	return keys
}

// reportDead reports recipients that were given up to the suppressions. An address that does not exist is
// suppressed immediately. A full or unreachable mailbox is suppressed after repeated reports.
func (d *Delivery) reportDead(ctx context.Context, c *claim, dec decision) error {
	if d.Suppressions == nil {
		return nil
	}
	var dead []suppression.Entry
	for _, i := range dec.lost {
		said := dec.why[i].smtp
		if said == nil || said.InDoubt || said.Code == 0 {
			continue
		}
		e := suppression.Entry{
			Address: c.envelope.To[i], Reason: suppression.HardBounce, Account: c.envelope.Account, Source: "smtp",
			MessageID: c.id, Response: said.Line,
		}
		switch {
		case said.Suppress:
			dead = append(dead, d.Suppressions.Learnt(e))
		case said.Verdict.AboutAddress() && said.Scope == smtpsend.ScopeRecipient:
			if _, err := d.Suppressions.Soft(ctx, e, d.clock.Now()); err != nil && !fault.Is(err, fault.Invalid) {
				return err
			}
		}
	}
	if len(dead) == 0 {
		return nil
	}
	_, err := d.Suppressions.Add(ctx, dead...)
	if fault.Is(err, fault.Invalid) { // an invalid address gets no mail anyway
		return nil
	}
	return err
}
