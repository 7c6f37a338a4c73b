package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// errResent ends a message that was replayed.
var errResent = errors.New("the recipient gets the campaign by another message")

// campaignRests returns the decision about a stored message whose campaign does not want it sent now; nil:
// it does. Then the message has the content and the recipient that the campaign has now, unless an operator
// named another recipient.
func (d *Delivery) campaignRests(ctx context.Context, c *claim, started time.Time, p policy) *decision {
	if c.envelope.Campaign == nil || d.Campaign == nil || c.unrecorded() {
		return nil
	}
	turn, err := d.Campaign(ctx, c.id)
	switch {
	case fault.Is(err, fault.Conflict):
		return d.refused(c, p, attempted{start: started, err: fmt.Errorf("%w: %w", errResent, err)})
	case err != nil:
		if _, lost := d.Accounts.Resolve(ctx, c.envelope.Account); fault.Is(lost, fault.NotFound) {
			return nil // sender says so
		}
		return d.untried(ctx, c, err, "its campaign can't be asked; the log says why")
	case turn.Over:
		p.noDeadLetters = true // nobody is to send it again
		return d.refused(c, p, attempted{start: started, err: fmt.Errorf("%w: %s", errNotTheirs, turn.Reason)})
	case !turn.Until.IsZero():
		return &decision{outcome: deferred, at: d.clock.Now(), due: turn.Until, reservation: c.reservation,
			reason: turn.Reason}
	case turn.write != nil && c.envelope.Added == 0:
		turn.envelope.Path = c.envelope.Path
		c.envelope, c.gateway, c.write = turn.envelope, turn.gateway, turn.write
		c.cleared = false // the address may be another one
	}
	return nil
}
