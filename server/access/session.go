package access

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// SessionCookie is the name of the cookie of a session.
const SessionCookie = "postroom_session"

// SessionLife is the lifetime of an unused session.
const SessionLife = 12 * time.Hour

// shownHash is how much of the hash of a cookie tells sessions apart in the audit log. It opens none.
const shownHash = 12

// session is the record of a session: the token that opened it.
type session struct {
	Token string `json:"token"`
	Proof string `json:"proof,omitempty"` // of the bootstrap token, see Access.proof
}

// Login opens a session for the pages with an access token, and returns the value of the cookie. The session
// has the rights of the token. It ends when the token is deleted, expires, or, in the configuration, is
// changed. Errors are those of Authenticate.
func (a *Access) Login(ctx context.Context, presented string, remote netip.Addr, now time.Time) (
	cookie string, err error) {
	grant, err := a.Authenticate(ctx, presented, remote, now)
	if err != nil {
		return "", err
	}
	cookie = newSecret()
	s := session{Token: grant.TokenID}
	if s.Token == BootstrapID {
		s.Proof = a.proof(cookie)
	}
	value, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("access: encode a session: %w", err)
	}
	hash, _ := secretHash(cookie)
	if err := a.store.putSession(ctx, hash, string(value), SessionLife); err != nil {
		return "", redisdb.Failed(err, "access: store a session")
	}
	return cookie, nil
}

// Session returns what the bearer of a cookie from Login may do, and extends the session by SessionLife.
// Unauthorized: there is no such session, or its token is gone or changed. The other errors are those of
// Authenticate.
func (a *Access) Session(ctx context.Context, cookie string, remote netip.Addr, now time.Time) (*Grant,
	error) {
	hash, ok := secretHash(cookie)
	if !ok {
		return nil, noSession()
	}
	value, ok, err := a.store.useSession(ctx, hash, SessionLife)
	if errors.Is(err, errForged) {
		a.log.ErrorContext(ctx, "session refused", "remote_addr", remote, "reason", err)
		return nil, noSession()
	}
	if err != nil {
		return nil, redisdb.Failed(err, "access: look up a session")
	}
	if !ok {
		return nil, noSession()
	}
	var s session
	if err := json.Unmarshal([]byte(value), &s); err != nil {
		return nil, fmt.Errorf("access: read a session: %w", err)
	}
	t, err := a.sessionToken(ctx, s, cookie, now)
	if err != nil {
		return nil, err
	}
	if t == nil {
		if err := a.store.dropSession(ctx, hash); err != nil {
			return nil, redisdb.Failed(err, "access: end a session whose token is gone")
		}
		return nil, noSession()
	}
	grant, err := a.admit(ctx, t, remote, now)
	if err == nil {
		grant.Session = SessionID(cookie)
	}
	return grant, err
}

// sessionToken returns the token that opened a session; nil: it is gone.
func (a *Access) sessionToken(ctx context.Context, s session, cookie string, now time.Time) (*token, error) {
	if s.Token != BootstrapID {
		return a.find(ctx, s.Token, now)
	}
	if a.bootstrap == nil || subtle.ConstantTimeCompare([]byte(s.Proof), []byte(a.proof(cookie))) != 1 {
		return nil, nil
	}
	return bootstrapToken, nil
}

// SessionID returns what tells a session apart in the audit log: Grant.Session.
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
	if err := a.store.dropSession(ctx, hash); err != nil {
		return redisdb.Failed(err, "access: end a session")
	}
	return nil
}

func noSession() error { return fault.New(fault.Unauthorized, "NoSession", "Please log in") }
