package handlebars

import (
	"strings"
	"unicode"
)

// Escaping is the output format of a template. It decides how values are escaped.
type Escaping int

// The kinds of escaping.
const (
	// HTML turns & < > " ' ` = into entities, exactly as Handlebars does.
	HTML Escaping = iota
	// Text prints values as they are.
	Text
	// Header prints values as they are and makes the result a single line: line breaks and control characters
	// become blanks. The result cannot begin a new header.
	Header
	// Markdown escapes every character that has a meaning in Markdown or html with a backslash.
	Markdown
)

// htmlEntity is the entity of each special character of html.
var htmlEntity = [...]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&quot;", '\'': "&#x27;",
	'`': "&#x60;",
	'=': "&#x3D;"}

// appendHTML appends s with html's special characters as entities.
func appendHTML(to []byte, s string) []byte {
	for {
		i := strings.IndexAny(s, "&<>\"'`=")
		if i < 0 {
			return append(to, s...)
		}
		to = append(to, s[:i]...)
		to = append(to, htmlEntity[s[i]]...)
		s = s[i+1:]
	}
}

// appendMarkdown appends s so that Markdown reads it as text. Blanks around lines are removed, since they
// could make code. Empty lines are removed, so a value stays in its paragraph.
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

// oneLine makes text a single line: runs of line breaks, tabs and control characters become one blank.
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
