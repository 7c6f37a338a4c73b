package outbox

import (
	"context"
	"time"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/suppression"
)

// stopsNow says directly before an attempt, as late as can be, which recipients must not be mailed: who
// unsubscribes a moment before is not. Where the claim of the message says that nobody is, and is not older
// than a moment, nobody has to be asked.
func (d *Delivery) stopsNow(ctx context.Context, c *claim, which []int) (map[int]*suppression.Entry, error) {
	if c.cleared && d.clock.now().Sub(c.asked) < clearedFor {
		return nil, nil
	}
	return d.stops(ctx, c.envelope, c.lane, which)
}

// clearedFor is how long an attempt goes by what it was told when it began, from the moment when that was
// asked: the answer may be long on its way, and says nothing of what was added meanwhile. Nearly all get to
// their relay within a millisecond or two.
const clearedFor = 250 * time.Millisecond

// beginKeys are those of begin.lua.
func (d *Delivery) beginKeys(partition int, id string) []string {
	keys := []string{d.keys.message(partition, id)}
	if d.Suppressions == nil {
		return keys
	}
	if version := d.Suppressions.VersionKey(); version != "" {
		keys = append(keys, version)
	}
	return keys
}

// teach has the suppressions learn from what relays said of recipients that were given up: an address that
// does not exist stops mail to it at once, one that is only full, or away for too long, when that happens
// again and again.
func (d *Delivery) teach(ctx context.Context, c *claim, dec decision) error {
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
		case said.Verdict == smtpsend.Soft && said.Scope == smtpsend.ScopeRecipient:
			if _, err := d.Suppressions.Soft(ctx, e, d.clock.Now()); err != nil && !fault.Is(err, fault.Invalid) {
				return err
			}
		}
	}
	if len(dead) == 0 {
		return nil
	}
	// what is no address is mailed by nobody
	if _, err := d.Suppressions.Add(ctx, dead...); err != nil && !fault.Is(err, fault.Invalid) {
		return err
	}
	return nil
}
