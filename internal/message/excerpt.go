package message

import (
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	gomessage "github.com/emersion/go-message"
)

// How far Excerpt looks into a message.
const (
	excerptRead  = 512 << 10
	excerptDepth = 8
	excerptHTML  = 128 << 10
)

// Excerpt returns the beginning of the readable text of a message, without markup, at most the given number
// of bytes. It uses the first plain text, else the first html. It reads as little as possible, at most half a
// megabyte. A truncated or malformed message gives what is readable. A message without text gives "".
func Excerpt(r io.Reader, most int) string {
	m, err := gomessage.ReadWithOptions(io.LimitReader(r, excerptRead), &gomessage.ReadOptions{
		MaxHeaderBytes: excerptRead})
	if m == nil || !readable(err) {
		return ""
	}
	plain, html := "", ""
	_ = m.Walk(func(path []int, part *gomessage.Entity, err error) error { // an error in a part ends the search
		if part == nil || len(path) > excerptDepth || !readable(err) {
			return errExcerpt
		}
		if kind, _, err := part.Header.ContentDisposition(); err == nil && strings.EqualFold(kind, "attachment") {
			return nil
		}
		switch kind, _, _ := part.Header.ContentType(); strings.ToLower(kind) {
		case "text/plain", "": // RFC 2045 section 5.2
			if plain = firstOf(part.Body, most); plain != "" {
				return errExcerpt
			}
		case "text/html":
			if html == "" {
				html = firstOf(part.Body, excerptHTML)
			}
		}
		return nil
	})
	if plain == "" && html != "" {
		plain = Shorten(TextFromHTML(html), most)
	}
	return plain
}

// errExcerpt ends the search.
var errExcerpt = errors.New("the excerpt is found")

// firstOf reads the beginning of a part, up to the first error.
func firstOf(body io.Reader, most int) string {
	text, _ := io.ReadAll(io.LimitReader(body, int64(most)+utf8.UTFMax)) // text before an error is used
	return Shorten(string(text), most)
}

// Shorten cuts a text to at most the given number of bytes, between two characters, and trims white space.
// The result is valid UTF-8.
func Shorten(text string, most int) string {
	return strings.TrimSpace(Clip(strings.ToValidUTF8(text, "\uFFFD"), most))
}
