package handlebars

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrLimit is wrapped by each [Error] about an exceeded limit of [Limits].
var ErrLimit = errors.New("limit of the template engine")

// ErrMissing is wrapped by the [Error] that strict mode returns for missing variables.
var ErrMissing = errors.New("variables are missing")

// Error is an error in a template, with its position.
type Error struct {
	Template string // name of the partial; empty for the template itself
	Line     int    // from 1
	Column   int    // from 1, in characters; 0 with Line 0: the template as a whole
	Message  string // for the template's author
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

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// catch returns the *Error that f panics with. Parsing and execution panic with one to stop immediately, as
// text/template does; no panic leaves the package.
func catch(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			err = fault
		}
	}()
	f()
	return nil
}

// errorAt returns an error for an offset of a source.
func (s *source) errorAt(offset int, cause error, format string, args ...any) *Error {
	line, column := s.place(offset)
	return &Error{Template: s.name, Line: line, Column: column, Message: fmt.Sprintf(format, args...),
		Err: cause}
}

// place returns the line and column of an offset.
func (s *source) place(offset int) (line, column int) {
	before := s.text[:min(offset, len(s.text))]
	line = strings.Count(before, "\n") + 1
	return line, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}
