package handlebars

import (
	"cmp"
	"strings"
)

// writer collects the output. It indents the output of partials that are alone on an indented line.
type writer struct {
	text     []byte
	limit    int
	escaping Escaping
	indent   string // indent of the current partial's lines
	pending  string // indentation to write before the next character
	mustache bool   // line breaks within values don't begin a line to be indented
	values   []Value
	marks    map[string]int // the values of Markdown, by their index in values
	marked   int            // bytes that the marked values will take
}

// content writes literal text. It reports whether it fitted.
func (w *writer) content(s string) bool {
	if w.indent == "" && w.pending == "" {
		w.text = append(w.text, s...)
		return len(w.text) <= w.limit
	}
	for s != "" {
		end := strings.IndexByte(s, '\n') + 1
		end = cmp.Or(end, len(s))
		w.flush()
		w.text = append(w.text, s[:end]...)
		if s[end-1] == '\n' {
			w.pending = w.indent
		}
		if len(w.text) > w.limit {
			return false
		}
		s = s[end:]
	}
	return true
}

// value writes a value. It escapes it unless it is markup or raw is set.
func (w *writer) value(s string, raw bool) bool {
	if s == "" {
		if w.mustache {
			w.flush()
		}
		return true
	}
	if (w.indent != "" || w.pending != "") && !w.mustache {
		return w.content(string(w.escape(nil, s, raw)))
	}
	w.flush()
	start := len(w.text)
	w.text = w.escape(w.text, s, raw)
	if w.escaping == HTML && !raw {
		w.values = append(w.values, Value{Text: s, Start: start, End: len(w.text)})
	}
	return len(w.text)+w.marked <= w.limit
}

func (w *writer) escape(to []byte, s string, raw bool) []byte {
	switch {
	case w.escaping == Header:
		return append(to, strings.Map(dropDirections, s)...)
	case raw:
	case w.escaping == HTML:
		return appendHTML(to, s)
	case w.escaping == Markdown:
		return append(to, w.mark(s)...)
	}
	return append(to, s...)
}

func (w *writer) flush() {
	w.text = append(w.text, w.pending...)
	w.pending = ""
}

// within indents the lines that write writes.
func (w *writer) within(indent string, write func()) {
	if indent == "" {
		write()
		return
	}
	outer, pending, start := w.indent, w.pending, len(w.text)
	w.indent, w.pending = outer+indent, pending+indent
	write()
	w.indent = outer
	switch {
	case len(w.text) == start: // it wrote nothing, so there is no line to indent
		w.pending = pending
	case w.pending != "":
		w.pending = outer
	}
}
