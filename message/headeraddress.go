package message

import "strings"

// addresses writes a field of addresses such as To, folded between addresses and between the words of a name.
func (w *headerWriter) addresses(name string, list []Address) {
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

// emptyGroup writes an empty group, for a message with all recipients in Bcc (RFC 5322 section 3.4, A.1.3).
func (w *headerWriter) emptyGroup(name, group string) {
	w.begin(name)
	w.word(" ", group+":;")
	w.end()
}

func (w *headerWriter) address(a Address, comma string) {
	name := strings.TrimSpace(a.Name)
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
	for word := range strings.SplitSeq(name, " ") {
		if word == "" || len(word) >= maxColumns || !isASCII(word) || strings.HasPrefix(word, "=?") {
			return false
		}
		for _, r := range word {
			if !isAtext(r) {
				return false
			}
		}
	}
	return true
}
