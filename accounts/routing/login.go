package routing

import (
	"context"
	"errors"

	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/smtpsend"
)

// login gives a candidate's relay with what is needed to log in. A token that was refused is replaced.
func (r *Router) login(ctx context.Context, c candidate, refused string) (smtpsend.Relay, *smtpsend.Error) {
	relay := c.SMTP
	if c.OAuth == nil {
		return relay, nil
	}
	token, err := r.Token(ctx, c.owner, *c.OAuth, refused)
	if err != nil {
		return smtpsend.Relay{}, tokenFailure(err)
	}
	relay.AccessToken = token
	if c.OAuthUser != "" {
		relay.Username = c.OAuthUser
	}
	return relay, nil
}

// tokenFailure is a login that did not come about because there is no access token.
func tokenFailure(err error) *smtpsend.Error {
	e, ok := errors.AsType[*oauth.Error](err)
	if !ok {
		return smtpsend.TokenError(err, false, 0)
	}
	return smtpsend.TokenError(err, e.Permanent, e.RetryAfter)
}

// refusesToken reports whether a relay has refused the token it was shown (usually 535, RFC 4954 section 6).
func refusesToken(err error) bool {
	e, ok := errors.AsType[*smtpsend.Error](err)
	return ok && e != nil && e.Phase == smtpsend.PhaseAuth && e.Verdict == smtpsend.Auth && e.Code != 0
}

// stubborn reports whether there is no other token because the token server gives them and the relay refuses
// them.
func stubborn(err *smtpsend.Error) bool {
	if err == nil {
		return false
	}
	e, ok := errors.AsType[*oauth.Error](err)
	return ok && e.Code == oauth.CodeRefused
}
