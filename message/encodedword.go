package message

import (
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Encoded words (RFC 2047) carry text that is not ASCII in a header. The encoder of the standard library
// splits at its own byte limit and ignores the start column, so its lines exceed RFC 5322's limit. This one
// fills lines exactly.
const (
	maxEncodedWord = 75 // RFC 2047 section 2
	encodedFrame   = len("=?utf-8?Q??=")
	minEncodedWord = 32 // with less room the word starts on the next line
)

// encodeWords writes s as encoded words of at most 75 columns; the first has at most first columns. It uses
// the shorter encoding. It splits only between characters (RFC 2047 section 5): each word decodes by itself.
func encodeWords(s string, first int) []string {
	useQ := qLength(s) <= (len(s)+2)/3*4
	var words []string
	room := min(first, maxEncodedWord) - encodedFrame
	for s != "" {
		n := fitting(s, room, useQ)
		words = append(words, encodedWord(s[:n], useQ))
		s = s[n:]
		room = maxEncodedWord - encodedFrame
	}
	return words
}

// fitting returns the number of bytes of s, in whole characters, that fit into room columns. It is at least
// one rune, so callers always advance.
func fitting(s string, room int, useQ bool) int {
	n, columns := 0, 0
	for n < len(s) {
		size := characterSize(s[n:])
		if !fits(s[n:n+size], n, columns, room, useQ) {
			if n > 0 {
				break
			}
			return runesFitting(s, room, useQ) // one character too long for a whole word
		}
		columns += qLength(s[n : n+size])
		n += size
	}
	return n
}

func runesFitting(s string, room int, useQ bool) int {
	n, columns := 0, 0
	for n < len(s) {
		_, size := utf8.DecodeRuneInString(s[n:])
		if n > 0 && !fits(s[n:n+size], n, columns, room, useQ) {
			break
		}
		columns += qLength(s[n : n+size])
		n += size
	}
	return n
}

func fits(more string, bytesSoFar, columnsSoFar, room int, useQ bool) bool {
	if useQ {
		return columnsSoFar+qLength(more) <= room
	}
	return (bytesSoFar+len(more)+2)/3*4 <= room
}

func encodedWord(s string, useQ bool) string {
	var b strings.Builder
	if !useQ {
		b.WriteString("=?utf-8?B?")
		b.WriteString(base64.StdEncoding.EncodeToString([]byte(s)))
		b.WriteString("?=")
		return b.String()
	}
	b.WriteString("=?utf-8?Q?")
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ':
			b.WriteByte('_')
		case qSafe(c):
			b.WriteByte(c)
		default:
			b.WriteByte('=')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	b.WriteString("?=")
	return b.String()
}

const upperHex = "0123456789ABCDEF"

// qSafe reports whether c is allowed in a display name (RFC 2047 section 5 (3)). This is the strictest of
// three contexts, so one encoder serves all.
func qSafe(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '!' || c == '*' ||
		c == '+' || c == '-' || c == '/'
}

func qLength(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' || qSafe(s[i]) {
			n++
		} else {
			n += 3
		}
	}
	return n
}

// characterSize returns the length of the first visible character: a letter with combining marks, an emoji
// sequence, a flag. Some mail programs decode word by word and would show the parts of a split one. It reads
// at most the length of a word.
func characterSize(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	flag := isRegional(r)
	joined := false
	for n < len(s) && n < maxEncodedWord {
		r, size := utf8.DecodeRuneInString(s[n:])
		switch {
		case joined, unicode.Is(unicode.M, r), r >= 0x1F3FB && r <= 0x1F3FF:
			joined = false
		case r == '\u200d':
			joined = true
		case flag && isRegional(r):
			flag = false
		default:
			return n
		}
		n += size
	}
	return n
}

func isRegional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }
