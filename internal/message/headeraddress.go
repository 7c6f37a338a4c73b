package message

import (
	"strings"
	"unicode/utf8"
)

// addresses writes a field of addresses such as To, folded between addresses and between a name's words.
// Without addresses it writes nothing.
func (w *headerWriter) addresses(name string, list ...Address) {
	if len(list) == 0 {
		return
	}
	w.begin(name)
	for i, a := range list {
		comma := ""
		if i < len(list)-1 {
			comma = ","
		}
		w.address(a, comma)
	}
	w.end()
}

func (w *headerWriter) address(a Address, comma string) {
	name := strings.TrimSpace(upright(a.Name))
	if name == "" {
		w.word(" ", a.Address+comma)
		return
	}
	switch {
	case isPhrase(name):
		for word := range strings.SplitSeq(name, " ") {
			w.word(" ", word)
		}
	case isASCII(name) && !strings.Contains(name, "=?") && !strings.Contains(name, "\t") && len(name) < 60:
		w.word(" ", `"`+quotedPairs.Replace(name)+`"`)
	default:
		w.encoded(name)
	}
	w.word(" ", "<"+a.Address+">"+comma)
}

// isPhrase reports whether a name needs no quotes: words of atext with one blank between them (RFC 5322
// section 3.2.5).
func isPhrase(name string) bool {
	notAtext := func(r rune) bool { return !isAtext(r) || r >= utf8.RuneSelf }
	for word := range strings.SplitSeq(name, " ") {
		if word == "" || len(word) >= maxColumns || strings.HasPrefix(word, "=?") ||
			strings.ContainsFunc(word, notAtext) {
			return false
		}
	}
	return true
}
