package smtpsend

import "time"

const nameOAuth2 = "EOAUTH2"

// TokenError is a login that did not come about because no OAuth 2.0 access token could be had for it, as
// whoever asks token servers tells a caller of Send: in the phase of AUTH, about the account. Permanent says
// that the token server refused for good (Verdict Auth); otherwise the failure is soft, and to be tried again
// no earlier than retryAfter. Its name is EOAUTH2.
func TokenError(err error, permanent bool, retryAfter time.Duration) *Error {
	e := &Error{Phase: PhaseAuth, Verdict: Soft, Scope: ScopeAccount, RetryAfter: retryAfter, Err: err,
		name: nameOAuth2}
	if permanent {
		e.Verdict = Auth
	}
	return e
}
