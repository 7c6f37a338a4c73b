package access

import (
	"slices"
	"time"

	"github.com/postroom/postroom/api"
)

// Grant is what the bearer of a token or session may do.
type Grant struct {
	TokenID string      // id of the token; BootstrapID for the configured one
	Account string      // the only account it may see; empty: all of them
	Scopes  []api.Scope // as the token was made; use Allows
	Rate    *Rate       // state of the token's rate limit; nil: it has none
}

// Rate is where a token stands in its rate limit.
type Rate struct {
	Limit     int           // requests in a window
	Remaining int           // requests left in this window
	Reset     time.Duration // until the window ends, in whole seconds rounded up
}

// Allows reports whether the token has the scope that a route asks for. See the package comment for what
// covers what.
func (g *Grant) Allows(scope api.Scope) bool {
	for _, have := range g.Scopes {
		switch have {
		case api.ScopeAdmin, api.ScopeAll:
			return true
		case api.ScopeAPI:
			if scope != api.ScopeAdmin && scope != api.ScopeAll {
				return g.Account == "" || slices.Contains(boundScopes, scope)
			}
		case scope:
			return true
		}
	}
	return false
}

// CanSee reports whether what belongs to the account may be seen. What belongs to the whole instance has no
// account: "".
func (g *Grant) CanSee(account string) bool { return g.Account == "" || g.Account == account }

// boundScopes are the scopes of a token bound to an account: the others reach beyond it.
var boundScopes = []api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeOutbox}

// scopes are all there are.
var scopes = []api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeOutbox, api.ScopeMetrics, api.ScopeAdmin,
	api.ScopeAll}
