package accounts

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
)

// scanPage is how many accounts are looked at with one round trip.
const scanPage = 500

// UsingGateway names the accounts that list a gateway, in the order of the alphabet. Whoever deletes a gateway asks this first.
func (a *Accounts) UsingGateway(ctx context.Context, gateway string) ([]string, error) {
	using := []string{}
	note := func(account api.Account) {
		if slices.ContainsFunc(account.Gateways, func(r api.Route) bool { return r.Gateway == gateway }) {
			using = append(using, account.Account)
		}
	}
	configured := a.configured != nil
	err := a.each(ctx, func(s *stored) error {
		configured = configured && !a.Configured(s.Account.Account) // the stored one stands in for it
		note(s.Account)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if configured {
		note(*a.configured)
		slices.Sort(using)
	}
	return using, nil
}

// GatewayEdited tells that a gateway was changed, which is how the trouble of an account that has only gateways is mended: where the mail
// of an account that lists it is held, the next check is due at once. Unavailable: Redis is away, and the checks come when they are due.
func (a *Accounts) GatewayEdited(ctx context.Context, gateway string) error {
	using, err := a.UsingGateway(ctx, gateway)
	if err != nil {
		return err
	}
	for _, id := range using {
		if err := a.store.recheck(ctx, id); err != nil {
			return away(err, "note that gateway %s of account %s was changed", gateway, id)
		}
		a.forget(id)
	}
	return nil
}

// each goes through all stored accounts in the order of their ids. One that is added meanwhile may be missed.
func (a *Accounts) each(ctx context.Context, do func(*stored) error) error {
	for last := ""; ; {
		ids, err := a.store.records.After(ctx, last, scanPage)
		if err != nil {
			return away(err, "list accounts")
		}
		all, err := a.store.all(ctx, ids)
		if err != nil {
			return away(err, "read %d accounts", len(ids))
		}
		for _, s := range all {
			if err := do(s); err != nil {
				return err
			}
		}
		if len(ids) < scanPage {
			return nil
		}
		last = ids[len(ids)-1]
	}
}
