package query

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/internal/message"
)

// MaxWord is the number of bytes of a word that are indexed. Longer words are mostly encoded data.
const MaxWord = 64

// Word is one word of a text.
type Word struct {
	Text       string // folded: lower case, without accents, [MaxWord] bytes at most
	Start, End int    // position in the text, in bytes
}

// Words splits a text into words: runs of letters and digits. In scripts without spaces each character is a
// word.
func Words(text string) []Word {
	words := make([]Word, 0, len(text)/6)
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case unspaced(r):
			words = append(words, Word{Text: Fold(text[at : at+size]), Start: at, End: at + size})
			at += size
		case inWord(r):
			end := endOfWord(text, at+size)
			if folded := shorten(Fold(text[at:end])); folded != "" {
				words = append(words, Word{Text: folded, Start: at, End: end})
			}
			at = end
		default:
			at += size
		}
	}
	return words
}

// Texts returns a text's words without their positions.
func Texts(text string) []string {
	words := Words(text)
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	return texts
}

func endOfWord(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !inWord(r) && !unicode.Is(unicode.Mn, r) || unspaced(r) {
			break
		}
		at += size
	}
	return at
}

func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// unspaced reports whether r is a letter of a script without spaces. Marks of these scripts are not indexed.
func unspaced(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar) &&
		unicode.IsLetter(r)
}

// Fold removes differences that readers ignore: case, accents, ligatures, full-width letters (NFKD without
// marks).
func Fold(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(text)
	}
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range norm.NFKD.String(strings.ToLower(text)) {
		if r == 'ß' {
			b.WriteString("ss")
		} else if !unicode.Is(unicode.Mn, r) && r != utf8.RuneError {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return norm.NFC.String(b.String()) // composes Korean again
}

// shorten shortens a word between two characters.
func shorten(word string) string {
	if len(word) <= MaxWord {
		return word
	}
	cut := MaxWord
	for cut > 0 && !utf8.RuneStart(word[cut]) {
		cut--
	}
	return word[:cut]
}

// FoldID folds an id. It removes the angle brackets of a Message-ID.
func FoldID(id string) string { return Fold(strings.Trim(strings.TrimSpace(id), "<>")) }

// AddressTerms returns the terms of an address: the whole, the local part, and the domain. An international
// domain has terms for both its forms.
func AddressTerms(address string) []string {
	terms := addressTerms(address)
	if unicode := message.UnicodeDomain(address); unicode != address {
		for _, t := range addressTerms(unicode) {
			if !slices.Contains(terms, t) {
				terms = append(terms, t)
			}
		}
	}
	return terms
}

func addressTerms(address string) []string {
	whole := Fold(strings.TrimSpace(address))
	at := strings.LastIndexByte(whole, '@')
	switch {
	case whole == "":
		return nil
	case at <= 0 || at == len(whole)-1:
		return []string{whole}
	}
	return []string{whole, whole[:at], whole[at+1:]}
}
