package queue

import (
	"regexp"
	"strings"

	"github.com/postroom/postroom/internal/message"
)

// maxErrorText is the longest error text kept with a task, in bytes. Relays can send pages of text.
const maxErrorText = 500

// mailbox matches text that looks like an address, including quoted local parts without blanks.
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
		s = message.Clip(s, maxErrorText) + "…"
	}
	return message.OneLine(s, maxErrorText+len("…"))
}
