package message

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine makes an untrusted text safe to show and to store: one line of valid UTF-8, at most the given
// number of bytes. Blanks, line breaks, control characters and invisible ones become one blank.
func OneLine(s string, most int) string {
	s = strings.ToValidUTF8(Clip(s, 4*most), "\uFFFD")
	return Clip(strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf)
	}), " "), most)
}

// Clip shortens a text to at most the given number of bytes, between two characters.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
