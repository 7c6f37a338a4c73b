package accounts

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/relays"
)

// Reseal seals anew, under the current secret of the instance, what was sealed under an older one, and says how many accounts that changed.
// Changes by others at the same time are safe, and running it again does no harm. Accounts that don't open are left as they are and named
// by the error, after all others were done.
func (a *Accounts) Reseal(ctx context.Context) (int, error) {
	n := 0
	var failed []error
	err := a.each(ctx, func(s *stored) error {
		done, err := a.resealOne(ctx, s)
		switch {
		case fault.Is(err, fault.Unavailable):
			return err
		case err != nil:
			failed = append(failed, err)
		case done:
			n++
		}
		return nil
	})
	if n > 0 {
		a.senders.Clear()
	}
	return n, errors.Join(append(failed, err)...)
}

// resealOne seals one account anew if it needs that, and reports whether it did. When somebody changed it meanwhile, it is read again.
func (a *Accounts) resealOne(ctx context.Context, old *stored) (bool, error) {
	id := old.Account.Account
	for range putTries {
		needed := false
		account, err := withSecrets(old.Account, func(all relays.Secrets) (err error) {
			needed, err = all.Reseal(a.ring, place(id))
			return err
		})
		if err != nil || !needed {
			return false, err
		}
		done, err := a.store.reseal(ctx, &stored{Account: account, Created: old.Created, Updated: old.Updated, revision: rand.Text()}, old)
		if err != nil {
			return false, away(err, "store account %s", id)
		}
		if done {
			return true, nil
		}
		if old, err = a.store.load(ctx, id); err != nil {
			return false, away(err, "load account %s", id)
		}
		if old == nil {
			return false, nil
		}
	}
	return false, fault.New(fault.Conflict, "AccountChanged", "Account %s is being changed by others; try again", id)
}
