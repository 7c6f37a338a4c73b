package access

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// SessionCookie returns the name of a session's cookie. Over TLS no other host, and no one who changes a page
// without TLS, can set a cookie of that name (RFC 6265bis, section 4.1.3.2).
func SessionCookie(tls bool) string { return CookieName("postroom_session", tls) }

// CookieName returns the name under which a cookie of a login is set.
func CookieName(name string, tls bool) string {
	if tls {
		return "__Host-" + name
	}
	return name
}

// SessionTTL is the lifetime of an unused session.
const SessionTTL = 12 * time.Hour

// shownHash is how much of a cookie's hash distinguishes sessions in lists and the audit log. It opens none.
const shownHash = 12

// maxAgent bounds the stored name of a browser, in bytes.
const maxAgent = 200

// Client describes who logs in.
type Client struct {
	Addr  netip.Addr // invalid: it is not known
	Agent string     // how its browser calls itself
}

// session is the record of a session: who opened it, when, and from where.
type session struct {
	Token   string `json:"token,omitempty"`
	Proof   string `json:"proof,omitempty"` // for the bootstrap token, see Access.proof
	Person  string `json:"person,omitempty"`
	Epoch   string `json:"epoch,omitempty"`   // the person's
	Account string `json:"account,omitempty"` // that a person with accounts acts for
	Created int64  `json:"created"`           // ms since 1970
	Address string `json:"address,omitempty"`
	Agent   string `json:"agent,omitempty"`
}

// ends returns the end of the session, however much it is used.
func (s session) ends(life time.Duration) time.Time { return time.UnixMilli(s.Created).Add(life) }

// Login opens a session for the pages with an access token, and returns the value of the cookie. The session
// has the token's rights. It ends when the token is deleted, expires, or, in the configuration, is changed.
// It returns the same errors as Authenticate.
func (a *Access) Login(ctx context.Context, presented string, by Client, now time.Time) (cookie string,
	err error) {
	grant, err := a.Authenticate(ctx, presented, by.Addr, now)
	if err != nil {
		return "", err
	}
	cookie = newSecret()
	s := session{Token: grant.TokenID}
	if s.Token == BootstrapID {
		s.Proof = a.proof(cookie)
	}
	return cookie, a.open(ctx, cookie, s, by, now)
}

// open stores a new session.
func (a *Access) open(ctx context.Context, cookie string, s session, by Client, now time.Time) error {
	hash, _ := secretHash(cookie)
	s.Created, s.Agent = now.UnixMilli(), strings.ToValidUTF8(by.Agent[:min(len(by.Agent), maxAgent)], "")
	if by.Addr.IsValid() {
		s.Address = by.Addr.String()
	}
	return a.store.putSession(ctx, hash, s, now.Add(-a.life))
}

// Session returns what the bearer of a cookie from Login may do, and extends the session by SessionTTL. It
// returns Unauthorized if there is no such session, if it has ended, or if its token or person is gone or
// changed. Its other errors are the same as Authenticate's.
func (a *Access) Session(ctx context.Context, cookie string, remote netip.Addr, now time.Time) (*Grant,
	error) {
	hash, ok := secretHash(cookie)
	if !ok {
		return nil, noSession()
	}
	s, ok, err := a.store.useSession(ctx, hash)
	if errors.Is(err, errForged) {
		a.log.ErrorContext(ctx, "session refused", "remote_addr", remote, "reason", err)
		return nil, noSession()
	}
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noSession()
	}
	grant, err := a.grant(ctx, s, cookie, remote, now)
	if err != nil {
		return nil, err
	}
	if grant == nil {
		if _, err := a.store.dropSession(ctx, hash); err != nil {
			return nil, err
		}
		return nil, noSession()
	}
	grant.Session, grant.SessionHash = hash[:shownHash], hash
	return grant, nil
}

// grant returns what a session may do; nil if it has ended.
func (a *Access) grant(ctx context.Context, s session, cookie string, remote netip.Addr,
	now time.Time) (*Grant,
	error) {
	if !now.Before(s.ends(a.life)) {
		return nil, nil
	}
	if s.Person != "" {
		return a.personGrant(ctx, s, now)
	}
	t, err := a.sessionToken(ctx, s, cookie, now)
	if t == nil || err != nil {
		return nil, err
	}
	return a.admit(ctx, t, remote, now)
}

// sessionToken returns the token that opened a session; nil if it is gone.
func (a *Access) sessionToken(ctx context.Context, s session, cookie string, now time.Time) (*token, error) {
	if s.Token != BootstrapID {
		return a.find(ctx, s.Token, now)
	}
	if a.bootstrap == nil || subtle.ConstantTimeCompare([]byte(s.Proof), []byte(a.proof(cookie))) != 1 {
		return nil, nil
	}
	return bootstrapToken, nil
}

// SessionID returns what tells a session apart in lists and the audit log: Grant.Session.
func SessionID(cookie string) string {
	hash, ok := secretHash(cookie)
	if !ok {
		return ""
	}
	return hash[:shownHash]
}

// Logout ends a session. An unknown one has ended already.
func (a *Access) Logout(ctx context.Context, cookie string) error {
	hash, ok := secretHash(cookie)
	if !ok {
		return nil
	}
	_, err := a.store.dropSession(ctx, hash)
	return err
}

const (
	maxSessions = 1000 // in a list
	sessionPage = 500  // that are read at a time
)

// Sessions lists the sessions that have not ended, newest first, 1000 at most. person limits it to one
// person's; empty means all. current is the caller's.
func (a *Access) Sessions(ctx context.Context, person string, current *Grant,
	now time.Time) ([]api.SessionInfo,
	error) {
	all := []api.SessionInfo{}
	err := a.store.eachSession(ctx, func(l listed) (bool, error) {
		if person != "" && l.Person != person {
			return true, nil
		}
		alive, err := a.alive(ctx, l.session, now)
		if alive {
			all = append(all, l.info(a.life, current, now))
		}
		return len(all) < maxSessions, err
	})
	return all, err
}

// alive reports whether a session would be let in. Only its cookie can show whether the configured token is
// still the one that opened it.
func (a *Access) alive(ctx context.Context, s session, now time.Time) (bool, error) {
	switch {
	case !now.Before(s.ends(a.life)):
		return false, nil
	case s.Person != "":
		g, err := a.personGrant(ctx, s, now)
		return g != nil, err
	case s.Token == BootstrapID:
		return a.bootstrap != nil, nil
	}
	t, err := a.find(ctx, s.Token, now)
	return t != nil && !t.expired(now), err
}

func (l listed) info(life time.Duration, current *Grant, now time.Time) api.SessionInfo {
	s := api.SessionInfo{ID: l.hash[:shownHash], Person: l.Person, TokenID: l.Token, Account: l.Account,
		Created:  time.UnixMilli(l.Created).UTC(),
		LastUsed: now.Add(l.left - SessionTTL).UTC().Truncate(time.Second),
		Expires:  now.Add(l.left).UTC().Truncate(time.Second), Address: l.Address, Agent: l.Agent,
		Current: current != nil && current.SessionHash == l.hash}
	if end := l.ends(life).UTC(); end.Before(s.Expires) {
		s.Expires = end
	}
	if s.LastUsed.Before(s.Created) { // by rounding
		s.LastUsed = s.Created
	}
	return s
}

// EndSession ends a session by its id, and reports whether there was one. person limits it to the sessions of
// a person; empty means any.
func (a *Access) EndSession(ctx context.Context, id, person string) (bool, error) {
	if len(id) != shownHash {
		return false, nil
	}
	ended := false
	err := a.store.eachSession(ctx, func(l listed) (bool, error) {
		if !strings.HasPrefix(l.hash, id) || person != "" && l.Person != person {
			return true, nil
		}
		var err error
		ended, err = a.store.dropSession(ctx, l.hash)
		return false, err
	})
	return ended, err
}

func noSession() error { return fault.New(fault.Unauthorized, "NoSession", "Please log in") }
