package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// campaignAgain is when a message is tried again whose campaign is paused.
const campaignAgain = 30 * time.Second

// errResent ends a message that was replayed.
var errResent = errors.New("the recipient gets the campaign by another message")

// campaignRests returns the decision about a message whose campaign does not go on; nil: it does.
func (d *Delivery) campaignRests(ctx context.Context, c *claim) *decision {
	if c.envelope.Campaign == nil || d.Campaign == nil {
		return nil
	}
	goes, err := d.Campaign(ctx, c.id)
	now := d.clock.Now()
	switch {
	case fault.Is(err, fault.Conflict):
		dec := decide(c, attempted{start: now, end: now, err: fmt.Errorf("%w: %w", errResent, err),
			refused: true}, d.policy(nil))
		return &dec
	case err != nil:
		d.log.WarnContext(ctx, "campaign not asked", "message_id", c.id, "error", err)
		return &decision{outcome: released, at: now}
	case goes:
		return nil
	}
	return &decision{outcome: deferred, at: now, due: now.Add(campaignAgain), reservation: c.reservation,
		reason: "its campaign is paused or held"}
}
