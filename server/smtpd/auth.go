package smtpd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/server/access"
)

// renewAfter is how long the check of a token at login holds for the first message. Within it, login and
// message count as one request.
const renewAfter = 30 * time.Second

// login is the identity of a client.
type login struct {
	token   string // checked again with each message
	tokenID string
	account string    // that sends; empty for the default account
	checked time.Time // the last check of the token; zero if a message was sent since

	keyRequired bool            // its mail needs an idempotency key
	quota       *api.TokenQuota // the token's
	quotaID     string          // the id by which it is counted
	bound       bool            // the token is bound to the account

	grant *access.Grant // from the last check; nil if the token is invalid
}

// auth logs a client in with a token (RFC 4954).
func (s *session) auth(ctx context.Context, arg string) reply {
	mechanism, initial, given := strings.Cut(arg, " ")
	switch {
	case !s.greeted || s.login != nil || s.t.begun:
		return badSequence
	case !s.mayLogIn():
		return reply{code: 538, enhanced: "5.7.11", text: "Encryption required: use TLS to log in"}
	}
	var c credentials
	var err error
	switch strings.ToUpper(mechanism) {
	case "PLAIN":
		c, err = s.plain(initial, given)
	case "LOGIN":
		c, err = s.loginMechanism(initial, given)
	default:
		return reply{code: 504, enhanced: "5.5.4", text: "Use AUTH PLAIN or AUTH LOGIN"}
	}
	if err != nil {
		return s.noAnswer(err)
	}
	return s.logIn(ctx, c)
}

// credentials are what a client logs in with.
type credentials struct{ user, token string }

// Errors of an exchange of AUTH.
var (
	errCancelled = errors.New("login cancelled by the client")
	errMalformed = errors.New("malformed answer")
)

func (s *session) noAnswer(err error) reply {
	switch {
	case errors.Is(err, errCancelled):
		return reply{code: 501, enhanced: "5.7.0", text: "Login cancelled"}
	case errors.Is(err, errMalformed), errors.Is(err, errBareLineEnd):
		return reply{code: 501, enhanced: "5.5.2", text: "Malformed answer"}
	}
	return s.farewell(err)
}

// plain is the mechanism of RFC 4616: identity to act as (here empty or the user), user, password.
func (s *session) plain(initial string, given bool) (credentials, error) {
	answer, err := s.answer("", initial, given)
	if err != nil {
		return credentials{}, err
	}
	parts := bytes.Split(answer, []byte{0})
	if len(parts) != 3 || len(parts[0]) > 0 && !bytes.Equal(parts[0], parts[1]) {
		return credentials{}, errMalformed
	}
	return credentials{string(parts[1]), string(parts[2])}, nil
}

// loginMechanism is AUTH LOGIN of old Microsoft clients: user and password, one after the other.
func (s *session) loginMechanism(initial string, given bool) (credentials, error) {
	user, err := s.answer("Username:", initial, given)
	if err != nil {
		return credentials{}, err
	}
	token, err := s.answer("Password:", "", false)
	return credentials{string(user), string(token)}, err
}

// answer returns the initial response of AUTH ("=" is an empty one), or asks the client for it.
func (s *session) answer(prompt, initial string, given bool) ([]byte, error) {
	if given {
		if initial = strings.TrimSpace(initial); initial == "=" {
			return nil, nil
		}
		return decoded([]byte(initial))
	}
	s.wire.reply(reply{code: 334, text: base64.StdEncoding.EncodeToString([]byte(prompt))})
	line, err := s.wire.line(maxAnswer, s.deadline())
	switch {
	case err != nil:
		return nil, err
	case string(line) == "*":
		return nil, errCancelled
	}
	return decoded(line)
}

func decoded(line []byte) ([]byte, error) {
	out, err := base64.StdEncoding.AppendDecode(nil, line)
	if err != nil {
		return nil, errMalformed
	}
	return out, nil
}

// logIn checks the token, its scopes and the account, in that order: without a valid token, the reply reveals
// nothing about accounts.
func (s *session) logIn(ctx context.Context, c credentials) reply {
	now := s.opts.Now()
	l := &login{token: c.token, account: c.user, checked: now}
	err := s.check(ctx, l, now)
	if err == nil {
		_, err = s.Accounts.Resolve(ctx, l.account)
	}
	s.metrics.logins.WithLabelValues(loginResult(err)).Inc()
	s.noteLogin(l, err)
	if err != nil {
		s.failures++
		s.log.loginRefused(ctx, s.remote, s.tls, err)
		return loginRefusal(err)
	}
	s.login = l
	s.pass.Prove()
	s.log.DebugContext(ctx, "smtp login", "remote_addr", s.remote, "tls", s.tls, "token_id", l.tokenID,
		"account", l.account)
	return reply{code: 235, enhanced: "2.7.0", text: "Authentication succeeded"}
}

// noteLogin puts a login, or its refusal, into the audit log. If Postroom can't look, that isn't a refusal.
func (s *session) noteLogin(l *login, err error) {
	who := l.grant.Actor(s.remote.String())
	if l.grant != nil {
		who.Kind = audit.SMTP
	}
	switch fault.KindOf(err) {
	case "":
		s.Audit.Note(api.AuditEntry{Who: who, Result: api.AuditDone, Action: "smtp login"})
	case fault.Internal, fault.Unavailable:
	default:
		s.Audit.Note(api.AuditEntry{Who: who, Result: api.AuditRefused, Action: "smtp login", Reason: err.Error()})
	}
}

// check returns an error unless the token may send as the account. A token bound to an account names it where
// the user name is empty.
func (s *session) check(ctx context.Context, l *login, now time.Time) error {
	grant, err := s.Access.Authenticate(ctx, l.token, s.remote, now)
	if err != nil {
		return err
	}
	l.grant, l.tokenID, l.keyRequired = grant, grant.TokenID, grant.KeyRequired
	l.bound, l.quota, l.quotaID = grant.Account != "", grant.Quota, grant.QuotaID
	l.account = cmp.Or(l.account, grant.Account)
	switch {
	case !grant.Allows(api.ScopeSMTP):
		return fault.New(fault.Forbidden, "", "Unauthorized scope")
	case !grant.CanSee(l.account):
		return fault.New(fault.Forbidden, "",
			"Unauthorized account: the user name must be empty or the token's account")
	}
	return nil
}

// renew checks the token again for a further message. The message thereby counts against the token's rate
// limit, and a deleted token is noticed.
func (s *session) renew(ctx context.Context) error {
	now := s.opts.Now()
	fresh := now.Sub(s.login.checked) < renewAfter
	s.login.checked = time.Time{}
	if fresh {
		return nil
	}
	return s.check(ctx, s.login, now)
}
