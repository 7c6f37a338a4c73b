package accounts

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
)

// UsingGateway names the accounts that list a gateway, in the order of the alphabet. Whoever deletes a
// gateway asks this first.
func (a *Accounts) UsingGateway(ctx context.Context, gateway string) ([]string, error) {
	using := []string{}
	err := a.store.Each(ctx, func(s *stored) error {
		if slices.ContainsFunc(s.Value.Gateways, func(r api.Route) bool { return r.Gateway == gateway }) {
			using = append(using, s.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(using)
	return using, nil
}

// GatewayEdited tells that a gateway was changed, which is how the trouble of an account that has only
// gateways is mended: where the mail of an account that lists it is held, the next check is due at once.
// Unavailable: Redis is away, and the checks come when they are due.
func (a *Accounts) GatewayEdited(ctx context.Context, gateway string) error {
	using, err := a.UsingGateway(ctx, gateway)
	if err != nil {
		return err
	}
	for _, id := range using {
		if err := a.recheck(ctx, id); err != nil {
			return redisdb.Failed(err, "accounts: note that gateway %s of account %s was changed", gateway, id)
		}
		a.forget(id)
	}
	return nil
}
