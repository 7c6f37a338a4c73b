package smtpd

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/postroom/postroom/api/fault"
)

// reply is the answer to a command: code (RFC 5321 section 4.2), enhanced code (RFC 3463; empty for 3xx and
// EHLO), text.
type reply struct {
	code     int
	enhanced string
	text     string
	more     []string // further lines, of EHLO
	close    bool     // the conversation ends with it
	silent   bool     // it is not sent
}

// Replies that are always the same.
var (
	ok      = reply{code: 250, enhanced: "2.0.0", text: "Ok"}
	tooBusy = reply{code: 421, enhanced: "4.7.0", text: "Too many connections; try again later",
		close: true}
	stopping = reply{code: 421, enhanced: "4.3.2", text: "Service is stopping; try again later",
		close: true}
	internalError = reply{code: 421, enhanced: "4.3.0", text: "An internal server error occurred", close: true}
	tooManyErrors = reply{code: 421, enhanced: "4.7.0", text: "Too many errors", close: true}
	tooIdle       = reply{code: 421, enhanced: "4.4.2", text: "Nothing was said for too long", close: true}
	noLogin       = reply{code: 421, enhanced: "4.7.0", text: "Nobody logged in for too long", close: true}
	loginFirst    = reply{code: 530, enhanced: "5.7.0", text: "Authentication required"}
	tlsFirst      = reply{code: 530, enhanced: "5.7.0", text: "Must issue a STARTTLS command first"}
	badSequence   = reply{code: 503, enhanced: "5.5.1", text: "Bad sequence of commands"}
	tooMuchAtOnce = reply{code: 452, enhanced: "4.3.1",
		text: "Too many messages are arriving; try again shortly"}
	ambiguousEnd = reply{code: 550, enhanced: "5.6.0",
		text: "Message refused: a line break other than CRLF next to a dot at the start of a line"}
)

func tooLarge(limit int64) reply {
	return reply{code: 552, enhanced: "5.3.4",
		text: fmt.Sprintf("The message is too large; the limit is %d octets", limit)}
}

func syntax(format string, args ...any) reply {
	return reply{code: 501, enhanced: "5.5.4", text: fmt.Sprintf(format, args...)}
}

// isError reports whether a reply is about a mistake in the conversation itself, which maxErrors bounds. A
// refused recipient or message doesn't count.
func (r reply) isError() bool { return r.code >= 500 && r.code < 550 || r.code == 555 }

// lines returns the reply as it is sent, without the last CRLF.
func (r reply) lines() []byte {
	b := make([]byte, 0, 64)
	last := r.text
	for _, line := range r.more {
		b = fmt.Appendf(b, "%d-%s\r\n", r.code, last)
		last = line
	}
	if r.enhanced == "" {
		return fmt.Appendf(b, "%d %s", r.code, last)
	}
	return fmt.Appendf(b, "%d %s %s", r.code, r.enhanced, last)
}

// refusal turns an error of the outbox into a reply: 4xx unless the client is at fault.
func refusal(err error) reply {
	e, known := errors.AsType[*fault.Error](err)
	if !known {
		return reply{code: 451, enhanced: "4.3.0", text: "An internal server error occurred; try again later"}
	}
	switch e.Kind {
	case fault.Invalid:
		return invalid(e)
	case fault.TooLarge:
		return reply{code: 552, enhanced: "5.3.4", text: oneLine(e.Message)}
	case fault.Unprocessable, fault.Conflict:
		return reply{code: 550, enhanced: "5.5.0", text: oneLine(e.Message)}
	case fault.NotFound:
		if e.Code == "AccountNotFound" {
			return reply{code: 550, enhanced: "5.7.1", text: "The account you send as does not exist any more"}
		}
		return reply{code: 550, enhanced: "5.5.4", text: oneLine(e.Message)}
	case fault.Unauthorized, fault.Forbidden:
		if e.Code == "SenderNotAllowed" || e.Code == "GatewayNotAllowed" {
			return reply{code: 550, enhanced: "5.7.1", text: oneLine(e.Message)}
		}
		return reply{code: 530, enhanced: "5.7.0", text: oneLine(e.Message)}
	case fault.Limited:
		if e.Code == "QuotaExceeded" {
			return reply{code: 451, enhanced: "4.2.2", text: oneLine(e.Message)}
		}
		return reply{code: 451, enhanced: "4.7.1", text: later(e)}
	case fault.Unavailable:
		if e.Code == "OutboxFull" {
			return reply{code: 452, enhanced: "4.3.1", text: oneLine(e.Message)}
		}
		return reply{code: 451, enhanced: "4.3.0", text: oneLine(e.Message)}
	}
	return reply{code: 451, enhanced: "4.3.0", text: "An internal server error occurred; try again later"}
}

// invalid names a message's errors. An invalid envelope address has its own enhanced code. Errors in the
// content are phrases about the message: "contains a NUL byte", "its X-Postroom-Send-At must be a time".
func invalid(e *fault.Error) reply {
	r := reply{code: 550, enhanced: "5.6.0"}
	var wrong []string
	for _, f := range e.Fields {
		switch {
		case strings.HasPrefix(f.Key, "envelope.to"):
			r.enhanced = "5.1.3"
		case strings.HasPrefix(f.Key, "envelope.from"):
			r.enhanced = "5.1.7"
		}
		switch {
		case f.Key == "idempotencyKey":
			wrong = append(wrong, "its X-Postroom-Idempotency-Key "+f.Message)
		case f.Key != "raw":
			wrong = append(wrong, f.Key+" "+f.Message)
		case strings.HasPrefix(f.Message, "its "), strings.HasPrefix(f.Message, "line "):
			wrong = append(wrong, f.Message)
		default:
			wrong = append(wrong, "it "+f.Message)
		}
	}
	if len(wrong) == 0 {
		wrong = []string{e.Message}
	}
	r.text = oneLine("Message refused: " + strings.Join(wrong, "; "))
	return r
}

// loginRefusal turns a login error into a reply. RFC 4954 section 4.7.2: 535 for bad credentials, 454 for
// temporary problems.
func loginRefusal(err error) reply {
	e, known := errors.AsType[*fault.Error](err)
	switch {
	case known && (e.Kind == fault.Unauthorized || e.Kind == fault.Forbidden || e.Kind == fault.NotFound):
		return reply{code: 535, enhanced: "5.7.8", text: oneLine(e.Message)}
	case known && e.Kind == fault.Limited:
		return reply{code: 454, enhanced: "4.7.0", text: later(e)}
	case known && e.Kind == fault.Unavailable:
		return reply{code: 454, enhanced: "4.7.0", text: oneLine(e.Message)}
	}
	return reply{code: 454, enhanced: "4.7.0", text: "An internal server error occurred; try again later"}
}

// later adds to a message when to try again.
func later(e *fault.Error) string {
	if e.RetryAfter <= 0 {
		return oneLine(e.Message) + "; try again later"
	}
	return fmt.Sprintf("%s; try again in %d seconds", oneLine(e.Message), int(math.Ceil(e.RetryAfter.Seconds())))
}

// maxText keeps a reply within the 512 octets of a line (RFC 5321 section 4.5.3.1.5).
const maxText = 400

// oneLine returns s as one line of printable ASCII, cut to maxText.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case b.Len() >= maxText:
			return b.String() + "..."
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case r < ' ' || r > '~':
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
