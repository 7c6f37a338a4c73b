package mail

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/bidi"
)

// clean makes text a single line. It drops the marks that change the direction of what follows: a name must
// not turn the rest of its line around.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\ufeff' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	words := strings.FieldsFunc(s, func(r rune) bool {
		return r == ' ' || unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	})
	return strings.TrimSpace(strings.Join(words, " "))
}

// isolates is how many characters isolated adds.
const isolates = 2

// isolated keeps a text with letters written from right to left from mixing with the words around it, for
// places without html. Other text stays as it is.
func isolated(s string) string {
	for _, r := range s {
		p, _ := bidi.LookupRune(r)
		if class := p.Class(); class == bidi.R || class == bidi.AL {
			return "\u2068" + s + "\u2069" // first strong isolate, pop directional isolate
		}
	}
	return s
}

// cut shortens a text to most code points. It does not cut a character that is made of several.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	var kept strings.Builder
	room := most - 1
	for state := -1; s != ""; {
		var cluster string
		cluster, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		if room -= utf8.RuneCountInString(cluster); room < 0 {
			break
		}
		kept.WriteString(cluster)
	}
	return strings.TrimRight(kept.String(), " ") + "…"
}

// maxURL is the length of a URL in bytes, as of the URLs of events.
const maxURL = 2048

// webURL returns an address if it is an http or https URL that can be in angle brackets, else "".
func webURL(s string) string {
	if len(s) > maxURL || s != clean(s) || strings.ContainsAny(s, " <>\"`\\") {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return s
}
