package accounts

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
)

// PendSender adds an address to the senders of an account, pending until [Accounts.ProveSender]. One that is
// on record stays as it is. asked is when its owner was asked.
func (a *Accounts) PendSender(ctx context.Context, id, address string, asked time.Time) (api.SenderInfo,
	error) {
	var right api.SenderRight
	err := a.editSenders(ctx, id, func(old *stored) (api.Account, error) {
		account := old.Value
		if _, i := findSender(account.Senders, address); i >= 0 {
			right = account.Senders[i]
			return account, nil
		}
		right = api.SenderRight{Sender: address, Status: api.SenderPending, Since: &asked}
		account.Senders = append(slices.Clone(account.Senders), right)
		return a.checked(ctx, account, old)
	})
	return a.senderInfo(id, right), err
}

// ProveSender makes a pending address a sender of the account, because its owner said so to a question that
// was asked at a time. NotFound: it is not on record, or has come there later. changed: it was pending until
// now.
func (a *Accounts) ProveSender(ctx context.Context, id, address string, asked time.Time) (info api.SenderInfo,
	changed bool, err error) {
	right, changed, err := a.verified(ctx, id, address, api.SenderByMail, func(s api.SenderRight) bool {
		return s.Since == nil || !asked.Before(*s.Since)
	})
	return a.senderInfo(id, right), changed, err
}

// verified makes a pending sender a verified one, unless proves says no; nil if it says yes.
func (a *Accounts) verified(ctx context.Context, id, sender, by string,
	proves func(api.SenderRight) bool) (right api.SenderRight, changed bool, err error) {
	err = a.editSenders(ctx, id, func(old *stored) (api.Account, error) {
		account := old.Value
		_, i := findSender(account.Senders, sender)
		if i < 0 {
			return account, senderNotFound()
		}
		if right = account.Senders[i]; right.Status != api.SenderPending {
			return account, nil
		}
		if proves != nil && !proves(right) {
			return account, senderNotFound()
		}
		account.Senders = slices.Clone(account.Senders)
		account.Senders[i] = api.SenderRight{Sender: right.Sender, Status: api.SenderVerified, By: by}
		account.Senders = a.normalSenders(account.Senders)
		right, changed = account.Senders[i], true
		return account, nil
	})
	return right, changed && err == nil, err
}
