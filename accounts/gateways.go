package accounts

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// UsingGateway returns the ids of the accounts that list a gateway, in alphabetical order. A gateway in use
// must not be deleted.
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

// GatewayEdited must be called after a gateway was changed: that may fix the accounts that list it. If their
// mail is held, the next check is due immediately. It returns Unavailable if Redis is unreachable; then the
// checks stay due as they were.
func (a *Accounts) GatewayEdited(ctx context.Context, gateway string) error {
	using, err := a.UsingGateway(ctx, gateway)
	if err != nil {
		return err
	}
	for _, id := range using {
		if _, err := recheckScript.Run(ctx, a.client, a.holdKeys(id), struct{}{}); err != nil {
			return redisdb.Failed(err, "accounts: recheck after a change of gateway %s, account %s", gateway, id)
		}
		a.forget(id)
	}
	return nil
}
