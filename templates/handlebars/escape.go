package handlebars

import (
	"strings"
	"unicode"
)

// Escaping returns where the result of a template goes, and so what must not be in a value that is printed.
type Escaping int

// The kinds of escaping.
const (
	// HTML turns & < > " ' ` = into entities, exactly as Handlebars does.
	HTML Escaping = iota
	// Text prints values as they are.
	Text
	// Header prints values as they are and makes one line of the whole result: line breaks and control characters become blanks. What comes
	// out can't begin a header of its own.
	Header
	// Markdown puts a backslash before whatever Markdown would take for more than text, html included.
	Markdown
)

const htmlSpecial = "&<>\"'`="

// appendHTML appends s with what is special to html as entities.
func appendHTML(to []byte, s string) []byte {
	for {
		i := strings.IndexAny(s, htmlSpecial)
		if i < 0 {
			return append(to, s...)
		}
		to = append(to, s[:i]...)
		to = append(to, htmlEntity(s[i])...)
		s = s[i+1:]
	}
}

func htmlEntity(c byte) string {
	switch c {
	case '&':
		return "&amp;"
	case '<':
		return "&lt;"
	case '>':
		return "&gt;"
	case '"':
		return "&quot;"
	case '\'':
		return "&#x27;"
	case '`':
		return "&#x60;"
	}
	return "&#x3D;"
}

// appendMarkdown appends s so that Markdown reads it as text. Lines lose the blanks around them, which could make them code, and empty
// lines go: a value stays within its paragraph.
func appendMarkdown(to []byte, s string) []byte {
	first := true
	for line := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line == "" && strings.ContainsAny(s, "\r\n") {
			continue
		}
		if !first {
			to = append(to, "\\\n"...)
		}
		first = false
		for i := range len(line) {
			if strings.IndexByte("\\`*_{}[]()<>#+-.!|~&=:\"'$@^", line[i]) >= 0 {
				to = append(to, '\\')
			}
			to = append(to, line[i])
		}
	}
	return to
}

// oneLine makes a header's value of text: line breaks, tabs and control characters become blanks, several of which become one.
func oneLine(text string) string {
	clean := strings.IndexFunc(text, unicode.IsControl) < 0
	if clean && !strings.HasPrefix(text, " ") && !strings.HasSuffix(text, " ") {
		return text
	}
	isBreak := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	lines := strings.FieldsFunc(text, isBreak)
	for i := range lines {
		lines[i] = strings.Trim(lines[i], " ")
	}
	return strings.Trim(strings.Join(lines, " "), " ")
}
