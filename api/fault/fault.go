package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is the kind of an error. It decides who has to act, and the HTTP status.
type Kind string

// The kinds.
const (
	Internal     Kind = "internal"     // a fault of Postroom: logged in full, not shown
	Invalid      Kind = "invalid"      // the request itself is wrong; Fields says where
	Unauthorized Kind = "unauthorized" // no credentials, or invalid ones
	Forbidden    Kind = "forbidden"    // known, but not allowed to do this
	NotFound     Kind = "not_found"    // it does not exist
	Conflict     Kind = "conflict"     // it exists, in a state that does not allow this
	TooLarge     Kind = "too_large"    // beyond a size limit
	// well formed, but it contradicts what is stored (a reused idempotency key, a template fault)
	Unprocessable Kind = "unprocessable"
	Limited       Kind = "limited"     // too many requests; see RetryAfter
	Unavailable   Kind = "unavailable" // a dependency is unreachable; see RetryAfter
)

// Field is one wrong field of a request.
type Field struct {
	Key     string // path in the request, such as "to[0].address"
	Message string // what is wrong, for the sender of the request
}

// Fields collects the wrong fields of a request.
type Fields []Field

// Add adds a field.
func (f *Fields) Add(key, format string, args ...any) {
	*f = append(*f, Field{Key: key, Message: fmt.Sprintf(format, args...)})
}

// Error is an error with a kind. Message is written for the client; Err, the cause, is for the log only.
type Error struct {
	Kind       Kind
	Code       string         // a stable name such as "GatewayNotFound"; empty: the kind is enough
	Message    string         // one sentence for the client
	Fields     []Field        // the wrong fields of an Invalid request, all of them
	RetryAfter time.Duration  // for Limited and Unavailable; zero: unknown
	Details    map[string]any // further facts for the client, such as the address of a dead letter
	Err        error          // the cause, kept from the client
}

// New returns an error of the given kind with a message for the client.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an error of the given kind around its cause. The cause is logged; the client reads only the
// message.
func Wrap(err error, kind Kind, code, format string, args ...any) *Error {
	e := New(kind, code, format, args...)
	e.Err = err
	return e
}

// InvalidField returns the error for one wrong field of a request.
func InvalidField(key, format string, args ...any) error {
	return InvalidFields([]Field{{Key: key, Message: fmt.Sprintf(format, args...)}})
}

// InvalidFields returns one error for all wrong fields of a request, or nil if there are none.
func InvalidFields(fields []Field) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Message: "Invalid input", Fields: fields}
}

// Error returns the text for the log: the message, the wrong fields, the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for i, f := range e.Fields {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + f.Key + ": " + f.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of an error or of one that it wraps. An error without a kind is Internal; nil has
// the kind "".
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is reports whether the error is of the given kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// CodeOf returns the stable name of an error, or "".
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}
