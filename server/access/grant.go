package access

import (
	"slices"
	"time"

	"github.com/postroom/postroom/api"
)

// Grant is what the bearer of a token or session may do. Code that serves a change checks ReadOnly.
type Grant struct {
	TokenID string      // id of the token; BootstrapID for the configured one; empty if it is a person
	Person  string      // name of the person whose session it is; empty if it is a token, or a session of one
	Name    string      // description of the token, or name of the person
	Session string      // beginning of the session's hash; empty if the token itself was presented
	Account string      // the only account it may see; empty means all of them
	Scopes  []api.Scope // the token's; check them with Allows
	Rate    *Rate       // state of the token's rate limit; nil if it has none

	Quota       *api.TokenQuota // how much may be submitted with it; nil means any amount
	QuotaID     string          // the id by which that is counted
	KeyRequired bool            // its submits need an idempotency key

	ReadOnly bool     // it may change only what is the person's own
	Accounts []string // the person's, one of which is Account; empty if the person is not bound
	// SessionHash is the hash of the session's cookie; empty if the token itself was presented.
	SessionHash string
}

// Rate is the state of a token's rate limit.
type Rate struct {
	Limit     int           // requests in a window
	Remaining int           // requests left in this window
	Reset     time.Duration // until the window ends, in whole seconds rounded up
}

// Allows reports whether the token has the scope that a route requires. The package comment describes the
// scopes.
func (g *Grant) Allows(scope api.Scope) bool {
	for _, have := range g.Scopes {
		switch have {
		case api.ScopeAdmin, api.ScopeAll:
			return true
		case api.ScopeAPI:
			if scope != api.ScopeAdmin && scope != api.ScopeAll {
				return g.Account == "" || slices.Contains(boundScopes, scope)
			}
		case api.ScopeSend:
			if scope == api.ScopeSend || scope == api.ScopeSMTP {
				return true
			}
		case scope:
			return true
		}
	}
	return false
}

// Actor returns who the bearer is, for the audit log. A nil Grant is an unauthenticated client.
func (g *Grant) Actor(address string) api.AuditActor {
	if g == nil {
		return api.AuditActor{Kind: "anonymous", Address: address}
	}
	kind := "token"
	switch {
	case g.Person != "":
		kind = "person"
	case g.Session != "":
		kind = "session"
	}
	return api.AuditActor{Kind: kind, TokenID: g.TokenID, Name: g.Name, Account: g.Account, Session: g.Session,
		Address: address}
}

// CanSee reports whether objects of the account may be seen. Objects of the whole instance have the account
// "".
func (g *Grant) CanSee(account string) bool { return g.Account == "" || g.Account == account }

// boundScopes are the scopes that a token bound to an account can have: the others reach beyond the account.
var boundScopes = []api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeSMTP, api.ScopeOutbox, api.ScopeLists,
	api.ScopeCampaigns, api.ScopeDigests}

// scopes are all scopes.
var scopes = []api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeSMTP, api.ScopeOutbox, api.ScopeLists,
	api.ScopeCampaigns, api.ScopeDigests, api.ScopeMetrics, api.ScopeAdmin, api.ScopeAll}
