package message

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Encoded words (RFC 2047) carry text that is not ASCII in a header. The encoder of the standard library
// splits at its own byte limit and ignores the start column, so its lines exceed RFC 5322's limit. This one
// fills lines exactly.
const (
	maxEncodedWord = 75 // RFC 2047 section 2
	encodedFrame   = len("=?utf-8?Q??=")
	minEncodedWord = 32 // with less room the word starts on the next line
)

// encodeWords writes s as encoded words of at most most columns; the first has at most first columns. It uses
// the shorter encoding. It splits only between characters (RFC 2047 section 5), so that each word decodes
// alone.
func encodeWords(s string, first, most int) []string {
	useQ := qLength(s) <= (len(s)+2)/3*4
	var words []string
	room := min(first, most) - encodedFrame
	for s != "" {
		n := fitting(s, room, useQ, characterSize)
		if n == 0 { // one character too long for a whole word
			n = max(fitting(s, room, useQ, runeSize), runeSize(s))
		}
		words = append(words, encodedWord(s[:n], useQ))
		s = s[n:]
		room = most - encodedFrame
	}
	return words
}

// fitting returns the number of bytes of s, in characters of the given size, that fit into room columns.
func fitting(s string, room int, useQ bool, size func(string) int) (n int) {
	for columns := 0; n < len(s); {
		character := s[n : n+size(s[n:])]
		columns += qLength(character)
		if useQ && columns > room || !useQ && (n+len(character)+2)/3*4 > room {
			break
		}
		n += len(character)
	}
	return n
}

func runeSize(s string) int {
	_, size := utf8.DecodeRuneInString(s)
	return size
}

func encodedWord(s string, useQ bool) string {
	if !useQ {
		return "=?utf-8?B?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
	}
	return "=?utf-8?Q?" + strings.ReplaceAll(escape(s, '=', qSafe+" "), " ", "_") + "?="
}

// escape writes each byte that is not in safe as a sign and two hexadecimal digits.
func escape(s string, sign byte, safe string) string {
	b := make([]byte, 0, len(s)+len(s)/2)
	for _, c := range []byte(s) {
		if strings.IndexByte(safe, c) >= 0 {
			b = append(b, c)
		} else {
			b = append(b, sign, upperHex[c>>4], upperHex[c&15])
		}
	}
	return string(b)
}

const upperHex = "0123456789ABCDEF"

// qSafe is the bytes allowed in a display name (RFC 2047 section 5 (3)). This is the strictest of three
// contexts, so one encoder serves all.
const (
	alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	qSafe        = alphanumeric + "!*+-/"
)

func qLength(s string) int {
	n := len(s)
	for _, c := range []byte(s) {
		if c != ' ' && strings.IndexByte(qSafe, c) < 0 {
			n += 2
		}
	}
	return n
}

// characterSize returns the length of the first visible character: a letter with combining marks, an emoji
// sequence, a flag. Some mail programs decode word by word and would show the parts of a split one. It reads
// at most the length of a word.
func characterSize(s string) int {
	character, _, _, _ := uniseg.FirstGraphemeClusterInString(Clip(s, maxEncodedWord), -1)
	return max(1, len(character))
}
