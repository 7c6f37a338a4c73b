package handlebars

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrLimit is behind each [Error] that says a bound of [Limits] was passed; errors.Is finds it.
var ErrLimit = errors.New("limit of the template engine")

// ErrMissing is behind the [Error] by which strict mode reports variables that the data lacks; errors.Is finds it.
var ErrMissing = errors.New("variables are missing")

// Error says what is wrong in a template, and where.
type Error struct {
	Template string // name of the partial; empty: the template itself
	Line     int    // from 1
	Column   int    // from 1, in characters; 0 with Line 0: the template as a whole
	Message  string // what is wrong, in words for its author
	Err      error  // ErrLimit, ErrMissing, the error of the context, or nil
}

// Error returns the place and the message in one line.
func (e *Error) Error() string {
	switch {
	case e.Line == 0 && e.Template == "":
		return e.Message
	case e.Line == 0:
		return fmt.Sprintf("partial %s: %s", e.Template, e.Message)
	case e.Template == "":
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("partial %s, line %d, column %d: %s", e.Template, e.Line, e.Column, e.Message)
}

// Unwrap returns the reason behind the message, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// errorAt makes the error for an offset of a source.
func (s *source) errorAt(offset int, cause error, format string, args ...any) *Error {
	line, column := s.place(offset)
	return &Error{Template: s.name, Line: line, Column: column, Message: fmt.Sprintf(format, args...), Err: cause}
}

// place turns an offset into line and column.
func (s *source) place(offset int) (line, column int) {
	before := s.text[:min(offset, len(s.text))]
	line = strings.Count(before, "\n") + 1
	return line, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}
