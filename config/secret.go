package config

import (
	"fmt"
	"regexp"
	"strings"
)

// masked replaces a secret for display. It does not reveal the secret's length.
const masked = "******"

// Secret is a text that is masked when printed, logged or written as JSON. Reveal returns the text itself.
type Secret string

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

// Format writes the mask for every verb of package fmt, %#v included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.shown())) }

// MarshalText returns the mask, so that JSON and slog never hold the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

func (s Secret) shown() string {
	if s == "" {
		return ""
	}
	return masked
}

// maskURL hides the credentials of a URL, even of an invalid one, which may be shown in the error about it.
// Everything before the last @ counts as credentials, because a password may hold an unescaped slash. So
// does the value of every query parameter with a name of a credential.
func maskURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	} else {
		scheme += "://"
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user := masked
		if name, _, ok := strings.Cut(rest[:at], ":"); ok && !strings.ContainsAny(name, "/?#@") {
			user = name + ":" + masked
		}
		rest = user + rest[at:]
	}
	return scheme + maskQuery(rest)
}

// credential matches the names of query parameters whose values are masked.
var credential = regexp.MustCompile("(?i)pass|secret|token|auth")

func maskQuery(rest string) string {
	head, query, ok := strings.Cut(rest, "?")
	if !ok {
		return rest
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		name, _, _ := strings.Cut(p, "=")
		if credential.MatchString(name) {
			params[i] = name + "=" + masked
		}
	}
	return head + "?" + strings.Join(params, "&")
}

// show returns a value of this setting with secrets masked.
func (k Key) show(text string) string {
	switch {
	case text == "" || k.mask == "":
		return text
	case k.mask == "url":
		return maskURL(text)
	}
	return masked
}
