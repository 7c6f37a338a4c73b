package access

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/people"
)

// Password is a person's proof of identity.
type Password struct {
	Name, Password string
	Code           string // from the app, or a recovery code; empty if none was typed
}

// LoginPerson opens a session for the pages with a name and a password, and returns the cookie's value and
// the session's rights. It ends when the person is changed or deleted. Unlike a right token, a right password
// is refused from an address that failed too often, because checking it is costly; but not if that person has
// logged in from there before. It returns the same errors as people.People.Login, and Limited.
func (a *Access) LoginPerson(ctx context.Context, p Password, by Client, now time.Time) (cookie string,
	grant *Grant, err error) {
	if a.people == nil {
		return "", nil, fault.New(fault.Unauthorized, "WrongLogin", "There are no users. Sign in with a token")
	}
	from := source{network(by.Addr), true}
	if wait := a.blockedFor(from, now); wait > 0 {
		if known, err := a.people.KnownFrom(ctx, p.Name, from.network); err != nil || !known {
			return "", nil, cmp.Or(err, tooManyFailures(wait))
		}
	}
	h, err := a.people.Login(ctx, p.Name, p.Password, p.Code, by.Addr, from.network, now)
	if wrong, ok := errors.AsType[*people.WrongLogin](err); ok && fault.Is(wrong, fault.Unauthorized) {
		if wait := a.countFailure(ctx, from, now); wait > 0 {
			return "", nil, tooManyFailures(wait)
		}
	}
	if err != nil {
		return "", nil, err
	}
	return a.openFor(ctx, h, by, now)
}

// LoginExternal opens a session for someone who logged in at another issuer, and returns the value of the
// cookie and the session's rights. It returns the same errors as people.People.LoginExternal.
func (a *Access) LoginExternal(ctx context.Context, x people.External, by Client, now time.Time) (
	cookie string, grant *Grant, err error) {
	h, err := a.people.LoginExternal(ctx, x, by.Addr, network(by.Addr), now)
	if err != nil {
		return "", nil, err
	}
	return a.openFor(ctx, h, by, now)
}

func (a *Access) openFor(ctx context.Context, h *people.Holder, by Client, now time.Time) (cookie string,
	grant *Grant, err error) {
	cookie = newSecret()
	s := session{Person: h.Name, Epoch: h.Epoch}
	if len(h.Accounts) > 0 {
		s.Account = h.Accounts[0]
	}
	if err := a.open(ctx, cookie, s, by, now); err != nil {
		return "", nil, err
	}
	grant = grantOf(h, s)
	grant.Session = SessionID(cookie)
	return cookie, grant, nil
}

// personGrant returns the rights of a person's session, or nil if the person is gone or was changed.
func (a *Access) personGrant(ctx context.Context, s session, now time.Time) (*Grant, error) {
	if a.people == nil {
		return nil, nil
	}
	h, err := a.people.Find(ctx, s.Person, now)
	if h == nil || err != nil || h.Epoch != s.Epoch {
		return nil, err
	}
	return grantOf(h, s), nil
}

// grantOf returns what a session of a person may do.
func grantOf(h *people.Holder, s session) *Grant {
	g := &Grant{Person: h.Name, Name: h.Name, Account: s.Account, Accounts: h.Accounts,
		Scopes: []api.Scope{api.ScopeAPI}}
	switch h.Role {
	case api.RoleAdmin:
		g.Scopes = []api.Scope{api.ScopeAdmin}
	case api.RoleOperator:
	default:
		g.ReadOnly = true
	}
	return g
}

// Renew makes the session of a request last beyond a change that ended the sessions of its person, such as a
// new password. The others stay ended.
func (a *Access) Renew(ctx context.Context, g *Grant, now time.Time) error {
	h, err := a.people.Find(ctx, g.Person, now)
	if err != nil || h == nil {
		return err
	}
	return a.changeSession(ctx, g, now, func(s *session) { s.Epoch = h.Epoch })
}

// SwitchAccount makes the session of a request act for another account of its person.
func (a *Access) SwitchAccount(ctx context.Context, g *Grant, account string, now time.Time) error {
	if !slices.Contains(g.Accounts, account) {
		return fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	return a.changeSession(ctx, g, now, func(s *session) { s.Account = account })
}

func (a *Access) changeSession(ctx context.Context, g *Grant, now time.Time, change func(*session)) error {
	s, ok, err := a.store.useSession(ctx, g.SessionHash)
	switch {
	case err != nil:
		return err
	case !ok:
		return noSession()
	}
	change(&s)
	return a.store.putSession(ctx, g.SessionHash, s, now.Add(-a.life))
}
