package outbox

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api/fault"
)

// sender returns the account of a message. errNoAccount: it was deleted. errNoSender: it has lost a sender,
// or the gateway, since the message was accepted. It doesn't ask this about messages that may name any.
func (d *Delivery) sender(ctx context.Context, c *claim) (accounts.Sender, error) {
	e := &c.envelope
	account, err := d.Accounts.Resolve(ctx, e.Account)
	switch {
	case fault.Is(err, fault.NotFound):
		return account, errNoAccount
	case err != nil || !d.confined(e.Bound):
		return account, err
	}
	if lost := account.CheckGateway(c.gateway); lost != nil {
		return account, fmt.Errorf("%w: %w", errNoSender, lost)
	}
	for _, address := range append([]string{e.From}, e.Named...) {
		if address != "" && !account.MaySendAs(address) { // the null sender is everybody's
			d.metrics.senders.WithLabelValues("attempt").Inc()
			return account, fmt.Errorf("%w: account %s can no longer send as %s; add this sender with "+
				"POST /v1/account/%s/senders, then replay the message or resume the campaign", errNoSender, account.ID,
				address, account.ID)
		}
	}
	return account, nil
}
