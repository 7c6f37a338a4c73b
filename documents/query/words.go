package query

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxWord is how many bytes of a word count. Longer ones are encoded data, mostly; their beginning is found.
const MaxWord = 64

// Word is one word of a text.
type Word struct {
	Text       string // folded: lower case, without accents, [MaxWord] bytes at most
	Start, End int    // where it stands in the text, in bytes
}

// Words cuts a text into words: runs of letters and digits. Each character of scripts that put no space between words is a word of its own.
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

// Texts are the words of a text, without their places.
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

// unspaced are letters of scripts that are written without spaces. Marks of these scripts are left out of the index.
func unspaced(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) &&
		unicode.IsLetter(r)
}

// Fold makes texts equal that people take for the same: lower case, no accents, no ligatures or full-width letters (NFKD, less its marks).
func Fold(text string) string {
	if plain(text) {
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
	return norm.NFC.String(b.String()) // Korean is put together again
}

func plain(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// shorten cuts a word at the end of a character.
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

// FoldID folds an id. The brackets of a Message-ID are not part of it.
func FoldID(id string) string { return Fold(strings.Trim(strings.TrimSpace(id), "<>")) }

// AddressTerms are what an address is found by: the whole of it, the part before the @, and its domain.
func AddressTerms(address string) []string {
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
