package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/smtpsend"
)

// errResent ends a message that was replayed.
var errResent = errors.New("the recipient gets the campaign by another message")

// campaignRests returns the decision about a message whose campaign does not want it sent now; nil: it does.
// Then the message has the content and the recipient that the campaign has now.
func (d *Delivery) campaignRests(ctx context.Context, c *claim, started time.Time, p policy) *decision {
	if c.envelope.Campaign == nil || d.Campaign == nil {
		return nil
	}
	turn, err := d.Campaign(ctx, c.id)
	now := d.clock.Now()
	switch {
	case fault.Is(err, fault.Conflict):
		dec := decide(c, attempted{start: now, end: now, err: fmt.Errorf("%w: %w", errResent, err),
			refused: true}, d.policy(nil))
		return &dec
	case err != nil:
		d.log.WarnContext(ctx, "campaign not asked", "message_id", c.id, "error", err)
		return &decision{outcome: released, at: now}
	case turn.Over:
		p.noDeadLetters = true // nobody is to send it again
		dec := decide(c, attempted{start: started, end: now, refused: true,
			err: fmt.Errorf("%w: %s", errNotTheirs, turn.Reason)}, p)
		return &dec
	case !turn.Until.IsZero():
		return &decision{outcome: deferred, at: now, due: turn.Until, reservation: c.reservation,
			reason: turn.Reason}
	case turn.write == nil:
		return nil
	}
	fresh, err := turn.write(ctx, redisdb.Time(c.personal.Date)) // each attempt has the same date
	if err != nil {
		dec := d.unwritten(ctx, c, err, started, p)
		return &dec
	}
	fresh.envelope.Path = c.envelope.Path
	c.envelope, c.gateway = fresh.envelope, fresh.gateway
	c.content, c.text = smtpsend.Bytes(fresh.raw), fresh.text
	c.rewritten, c.cleared = true, false // the address may be another one
	return nil
}
