package message

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths of secrets, in bytes.
const (
	leastMasked = 4  // shorter ones are found in too many sentences
	maskedInAll = 16 // no word has one of this length by chance
)

// Mask hides the secrets that a server repeats. Short ones are hidden only as words: a hole within a word
// would damage what the server says, and tell the secret.
func Mask(text string, secrets []string) string {
	for _, s := range slices.SortedFunc(slices.Values(secrets), func(a, b string) int {
		return cmp.Compare(len(b), len(a))
	}) {
		for from := 0; len(s) >= leastMasked; {
			at := strings.Index(text[from:], s)
			if at < 0 {
				break
			}
			at += from
			before, after := text[:at], text[at+len(s):]
			if from = at + 1; len(s) >= maskedInAll || isWord(before, s, after) {
				text, from = before+"***"+after, at+len("***")
			}
		}
	}
	return text
}

// isWord reports whether s is a word between the texts, not a part of one, of a host name or of a URL's path.
func isWord(before, s, after string) bool {
	joins := `-.'’`
	if url := before[strings.LastIndexAny(before, " \t<(\"'")+1:]; strings.Contains(url, "://") {
		joins += "/"
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	beside, size := utf8.DecodeLastRuneInString(before)
	beyond, _ := utf8.DecodeLastRuneInString(before[:len(before)-size])
	if inWord(first) && (inWord(beside) || strings.ContainsRune(joins, beside) && inWord(beyond)) {
		return false
	}
	beside, size = utf8.DecodeRuneInString(after)
	beyond, _ = utf8.DecodeRuneInString(after[size:])
	return !inWord(last) || !inWord(beside) && !(strings.ContainsRune(joins, beside) && inWord(beyond))
}

func inWord(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
}
