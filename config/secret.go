package config

import (
	"fmt"
	"strings"
)

// masked is what is shown in place of a secret. It says nothing about its length.
const masked = "******"

// Secret is a text that no printing, logging or JSON shows. Reveal gives the text itself.
type Secret string

// Reveal gives the text, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// Format shows the mask for every verb of package fmt, %#v included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.shown())) }

// MarshalText gives the mask, so that JSON and slog never hold the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

func (s Secret) shown() string {
	if s == "" {
		return ""
	}
	return masked
}

// maskURL hides the credentials of a URL, however broken it is: it may be shown just because it could not be parsed. What stands before
// the last @ is taken for credentials, since a password may hold an unescaped slash; so is the value of every query parameter that
// sounds like one.
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

func maskQuery(rest string) string {
	head, query, ok := strings.Cut(rest, "?")
	if !ok {
		return rest
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		name, _, _ := strings.Cut(p, "=")
		low := strings.ToLower(name)
		if strings.Contains(low, "pass") || strings.Contains(low, "secret") || strings.Contains(low, "token") || strings.Contains(low, "auth") {
			params[i] = name + "=" + masked
		}
	}
	return head + "?" + strings.Join(params, "&")
}

// show gives a value of this setting as anybody may see it.
func (k Key) show(text string) string {
	switch {
	case text == "" || k.mask == "":
		return text
	case k.mask == "url":
		return maskURL(text)
	default:
		return masked
	}
}
