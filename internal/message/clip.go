package message

import "unicode/utf8"

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
