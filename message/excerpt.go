package message

import (
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	gomessage "github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // teaches go-message the charsets of raw messages
)

// How far Excerpt looks into a message.
const (
	excerptRead  = 512 << 10
	excerptDepth = 8
	excerptHTML  = 128 << 10
)

// Excerpt returns the beginning of what people read of a message, at most so many bytes, without markup: its first plain text, or else its first
// html as a text. It reads no more of the message than it needs, half a megabyte at most, and takes what it can get of one that is cut off or
// wrong. A message with no text gives "".
func Excerpt(r io.Reader, most int) string {
	m, err := gomessage.ReadWithOptions(io.LimitReader(r, excerptRead), &gomessage.ReadOptions{MaxHeaderBytes: excerptRead})
	if m == nil || err != nil && !gomessage.IsUnknownCharset(err) && !gomessage.IsUnknownEncoding(err) {
		return ""
	}
	plain, html := "", ""
	_ = m.Walk(func(path []int, part *gomessage.Entity, err error) error { // an error in a part ends the search
		switch {
		case part == nil || len(path) > excerptDepth:
			return errExcerpt
		case err != nil && !gomessage.IsUnknownCharset(err) && !gomessage.IsUnknownEncoding(err):
			return errExcerpt
		case attached(part):
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

// attached reports whether a part is a file rather than what people read.
func attached(part *gomessage.Entity) bool {
	kind, _, err := part.Header.ContentDisposition()
	return err == nil && strings.EqualFold(kind, "attachment")
}

// firstOf reads the beginning of a part, as far as it can be read.
func firstOf(body io.Reader, most int) string {
	text, _ := io.ReadAll(io.LimitReader(body, int64(most)+utf8.UTFMax)) // what came before the error is as good
	return Shorten(string(text), most)
}

// Shorten cuts a text to so many bytes, between two characters, without the blanks around it. The result is valid UTF-8.
func Shorten(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	return strings.TrimSpace(text)
}
