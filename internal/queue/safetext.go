package queue

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxErrorText is the longest error text kept with a task, in bytes. Relays can send pages of text.
const maxErrorText = 500

// mailbox matches what looks like an address, quoted local parts included as far as a blank.
var mailbox = regexp.MustCompile(`[^\s<>,;:"'()\[\]]+@[^\s<>,;:"'()\[\]]+`)

// safeText makes an error text safe for the dashboard: no addresses, no control characters, limited length.
// Callers should pass summaries without addresses; this is a second protection.
func safeText(s string) string {
	if strings.IndexByte(s, '@') >= 0 {
		s = mailbox.ReplaceAllStringFunc(s, func(address string) string {
			return "***" + address[strings.LastIndexByte(address, '@'):]
		})
	}
	if len(s) > maxErrorText {
		s = cut(s, maxErrorText) + "…"
	}
	return strings.Map(printable, s)
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// printable turns line breaks and other control characters into blanks. Invalid UTF-8 becomes U+FFFD:
// asynq's protobuf refuses to store it, and the task would be stuck.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}
