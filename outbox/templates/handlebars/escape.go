package handlebars

import (
	"strconv"
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
	// Header prints values without characters that turn the direction of what follows around, and makes the
	// result a single line: line breaks and control characters become blanks. The result cannot begin a new
	// header.
	Header
	// Markdown prints a mark instead of each value ([Mark]), because only a Markdown parser knows whether a
	// value is in text, in code or in an html tag. Whole numbers are printed, so that they can number lists.
	Markdown
)

// htmlEntity has html's entities for special characters.
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

// Mark begins the mark of a value in Markdown. The value's index in Result.Values and a Z follow. To a parser
// of Markdown the mark is a word. It begins with a capital, so that no web address in text ends inside it.
const Mark = "QJZX"

// mark returns a value's placeholder in Markdown. Equal values have equal marks, so that they can name one
// reference.
func (w *writer) mark(s string) string {
	if strings.Trim(s, "0123456789") == "" || strings.TrimSpace(s) == "" {
		return strings.TrimSpace(s)
	}
	i, known := w.marks[s]
	if !known {
		if w.marks == nil {
			w.marks = map[string]int{}
		}
		i = len(w.values)
		w.marks[s] = i
		w.values = append(w.values, Value{Text: s})
	}
	w.marked += len(appendHTML(nil, s))
	return Mark + strconv.Itoa(i) + "Z"
}

// dropDirections drops the embeddings and overrides of Unicode (UAX 9, 2): a name must not turn the rest of a
// subject around. Isolates stay; package message drops those without an end when it writes the header.
func dropDirections(r rune) rune {
	if r >= '\u202a' && r <= '\u202e' {
		return -1
	}
	return r
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
