package routing

import (
	"context"
	"errors"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/smtpsend"
)

// login returns a candidate's relay with its credentials. refused is a token to be replaced, or empty.
func (r *Router) login(ctx context.Context, c candidate, refused string) (gateways.Relay, *smtpsend.Error) {
	relay := c.Relay
	if c.OAuth == nil {
		return relay, nil
	}
	token, err := r.Token(ctx, c.owner, *c.OAuth, refused)
	if err != nil {
		return gateways.Relay{}, tokenFailure(err)
	}
	relay.SMTP.AccessToken = token
	if c.OAuthUser != "" {
		relay.SMTP.Username = c.OAuthUser
	}
	return relay, nil
}

// tokenFailure returns the error of a login without an access token.
func tokenFailure(err error) *smtpsend.Error {
	e, ok := errors.AsType[*oauth.Error](err)
	if !ok {
		return smtpsend.TokenError(err, false, 0)
	}
	return smtpsend.TokenError(err, e.Permanent, e.RetryAfter)
}

// refusesToken reports whether a relay has refused the token (usually 535, RFC 4954 section 6).
func refusesToken(err error) bool {
	e, ok := errors.AsType[*smtpsend.Error](err)
	return ok && e != nil && e.Phase == smtpsend.PhaseAuth && e.Verdict == smtpsend.Auth && e.Code != 0
}

// stubborn reports whether there is no other token because the relay refuses all tokens of the token server.
func stubborn(err *smtpsend.Error) bool {
	if err == nil {
		return false
	}
	e, ok := errors.AsType[*oauth.Error](err)
	return ok && e.Code == oauth.CodeRefused
}
