package oauth

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/message"
)

// Error is why there is no access token. It holds no secret.
type Error struct {
	// Owner is who asked, such as "account:shop".
	Owner string
	// Permanent means that the same request would meet the same answer: somebody has to look at the account.
	// Otherwise it is worth trying again later.
	Permanent bool
	// Code is the error code of the token server (RFC 6749 section 5.2), such as "invalid_grant", or one of
	// ours: [CodeSettings], [CodeRefused]. Empty when there was no answer, or none that has one.
	Code string
	// Description is what the token server or this package says about it, for people. It may be empty.
	Description string
	// Status is the HTTP status of the answer; 0 when there was none.
	Status int
	// RetryAfter is how long to wait before trying again, as far as is known; 0: as you like.
	RetryAfter time.Duration
	// Err is what went wrong on the way to the token server or to Redis; nil when there was an answer.
	Err error
}

// The codes that don't come from token servers.
const (
	// CodeSettings means that the client can't be used as it is configured.
	CodeSettings = "client_settings"
	// CodeRefused means that the token server gives tokens, and the relay refuses them.
	CodeRefused = "token_refused"
)

// Error says in one line what happened.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("access token of " + e.Owner + ": ")
	switch {
	case e.Code != "":
		b.WriteString(e.Code)
	case e.Status != 0:
		b.WriteString("the token server answers " + strconv.Itoa(e.Status))
	default:
		b.WriteString("can't be had")
	}
	if e.Description != "" {
		b.WriteString(": " + e.Description)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap gives Err.
func (e *Error) Unwrap() error { return e.Err }

// isPermanent says whether an error code means that asking again is no use. The first three are RFC 6749's
// for a refresh; then come those for a request that can't be right as configured, and those of large
// providers for a user or an administrator who took the consent back. What is not listed may pass.
func isPermanent(code string) bool {
	switch code {
	case "invalid_grant", "invalid_client", "unauthorized_client",
		"invalid_request", "invalid_scope", "unsupported_grant_type", "access_denied",
		"interaction_required", "consent_required", "login_required",
		"deleted_client", "disabled_client", "admin_policy_enforced", "org_internal", "unsupported_token_type":
		return true
	}
	return false
}

// maxText bounds what is kept of a description. Microsoft's begin with the reason and go on with ids and
// times.
const maxText = 300

// secretsOf are the texts that must not be seen, each in the forms in which a server may send it back.
func secretsOf(secrets ...string) []string {
	var all []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		all = append(all, s, url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s)),
			base64.RawURLEncoding.EncodeToString([]byte(s)))
	}
	return all
}

// scrub makes a text of the token server fit to be shown: the first line, without control characters and
// secrets, not too long.
func scrub(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "******")
	}
	text, _, _ = strings.Cut(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), "\n")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r <= 0x9f || r >= '\u2028' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return -1
		}
		return r
	}, text)
	if len(text) > maxText {
		text = message.Clip(text, maxText) + "…"
	}
	return text
}

// code gives an error code where it is one: RFC 6749 allows more, but servers use words.
func code(text string, secrets []string) string {
	if len(text) > 64 || scrub(text, secrets) != text || strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' &&
			r != '.'
	}) {
		return ""
	}
	return text
}
