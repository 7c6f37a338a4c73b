package oauth

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/message"
)

// Error is the reason why there is no access token. It holds no secret.
type Error struct {
	Owner string // such as "account:shop"
	// Permanent means that the same request would get the same answer: an operator has to act. Otherwise the
	// request may succeed later.
	Permanent bool
	// Code is the error code of the token server (RFC 6749 section 5.2), such as "invalid_grant", or
	// [CodeSettings] or [CodeRefused]. Empty if there was no answer, or none with a code.
	Code        string
	Description string        // by the token server or this package, for operators; may be empty
	Status      int           // HTTP status of the answer; 0 if there was none
	RetryAfter  time.Duration // requested wait; 0 if unknown
	Err         error         // from the connection to the token server or Redis; nil if there was an answer
}

// Codes of this package.
const (
	// CodeSettings means that the client can't be used as it is configured.
	CodeSettings = "client_settings"
	// CodeRefused means that the token server gives tokens, and the relay refuses them.
	CodeRefused = "token_refused"
)

// Error returns one line.
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

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// isPermanent reports whether a request with this error code can't succeed later. The first three codes are
// RFC 6749's for a refresh. Then come codes for a wrong configuration, and large providers' codes for a
// revoked consent. An unlisted code may pass.
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

// maxText bounds a description, in bytes. Microsoft's begin with the reason, and ids and times follow.
const maxText = 300

// secretsOf returns secrets in all the forms in which a server may send them back.
func secretsOf(secrets ...string) []string {
	var all []string
	for _, s := range secrets {
		all = append(all, s, url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s)),
			base64.RawURLEncoding.EncodeToString([]byte(s)))
	}
	return all
}

// scrub returns the first line of the token server's text, without secrets, cut to maxText.
func scrub(text string, secrets []string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(message.Mask(text, secrets)), "\n")
	return message.OneLine(text, maxText)
}

// code returns text if it is an error code, else "". RFC 6749 allows more characters, but servers use words.
func code(text string, secrets []string) string {
	if len(text) > 64 || scrub(text, secrets) != text || strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' &&
			r != '.'
	}) {
		return ""
	}
	return text
}
