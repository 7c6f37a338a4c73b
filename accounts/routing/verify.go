package routing

import (
	"context"
	"sync"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
)

// Login is the result of logging in to one of an account's relays.
type Login struct {
	Gateway string // empty for the account's own relay
	Host    string // with port, where the settings have one
	Err     error  // an *smtpsend.Error; nil if it works
}

// Verify logs in to all of an account's relays at once, and returns the results in the account's order. It
// sends nothing, asks no limit, and changes no breaker.
func (r *Router) Verify(ctx context.Context, account accounts.Sender) []Login {
	out := make([]Login, len(account.Relays))
	var group sync.WaitGroup
	for i, route := range account.Relays {
		group.Go(func() {
			out[i] = Login{Gateway: route.Gateway, Host: route.Host(), Err: r.verify(ctx, account.ID, route)}
		})
	}
	group.Wait()
	return out
}

// verify logs in to one relay, with another access token if the first is refused.
func (r *Router) verify(ctx context.Context, account string, route gateways.Relay) error {
	c := newCandidate(account, route, 0)
	relay, failure := r.login(ctx, c, "")
	if failure != nil {
		return failure
	}
	err := r.Transports.of(relay).Verify(ctx, relay)
	if c.OAuth == nil || !refusesToken(err) || ctx.Err() != nil {
		return err
	}
	another, failure := r.login(ctx, c, relay.SMTP.AccessToken)
	switch {
	case failure == nil && another.SMTP.AccessToken == relay.SMTP.AccessToken, stubborn(failure):
		return err
	case failure != nil:
		return failure
	}
	return r.Transports.of(another).Verify(ctx, another)
}
