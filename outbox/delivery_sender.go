package outbox

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api/fault"
)

// sender returns the account of a message. errNoAccount: it was deleted. errNoSender: it has lost a sender
// since the message was accepted. It doesn't ask this about messages that may name any sender.
func (d *Delivery) sender(ctx context.Context, e envelope) (accounts.Sender, error) {
	account, err := d.Accounts.Resolve(ctx, e.Account)
	switch {
	case fault.Is(err, fault.NotFound):
		return account, errNoAccount
	case err != nil || !d.confined(e.Bound):
		return account, err
	}
	all := e.Named
	if e.From != "" { // the null sender is everybody's
		all = append([]string{e.From}, all...)
	}
	for _, address := range all {
		if !account.MaySendAs(address) {
			d.metrics.senders.WithLabelValues("attempt").Inc()
			return account, fmt.Errorf("%w: account %s can no longer send as %s; add this sender with "+
				"POST /v1/account/%s/senders, then replay the message or resume the campaign", errNoSender, account.ID,
				address, account.ID)
		}
	}
	return account, nil
}
