package smtpsend

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Message is one mail and its envelope.
type Message struct {
	From string   // reverse path; empty: the null sender of bounces
	To   []string // recipients; at least one
	Body Body     // RFC 5322 content; line ends are made CRLF on the way out

	// the content has UTF-8 headers (RFC 6532): needs SMTPUTF8. A non-ASCII local part needs it too, by itself
	UTF8     bool
	EightBit bool // the content has 8-bit body parts: needs 8BITMIME
	DSN      DSN  // delivery reports to ask for; ignored by relays that do not offer DSN

	// RequireTLS asks every relay on the way for verified TLS (REQUIRETLS, RFC 8689). A relay that does not
	// offer that over TLS of its own that was verified gets nothing: the message fails with Verdict Policy.
	RequireTLS bool

	// BeforeDot is called when all of the content but the terminating dot has been written, with the recipients
	// the relay accepted in this transaction. Whatever must be recorded before delivery becomes possible is
	// recorded here. An error drops the connection without the dot, so nothing is delivered, and is the cause of
	// the error Send returns. It is called once per transaction; nil: nothing to record.
	BeforeDot func(ctx context.Context, accepted []string) error

	// AtDot is asked in the last moment before the dot is written, after BeforeDot has said yes: a process that
	// was stopped in between may have lost the right to write it. It must answer at once. An error does what one
	// of BeforeDot does; nil: nobody is asked.
	AtDot func() error

	// Answered is called after a transaction that leaves recipients for a further one, with what became of all
	// that were answered so far, so that it can be recorded before the next ones are at stake. An error ends the
	// delivery: the recipients left fail softly. Nil: nothing to record.
	Answered func(ctx context.Context, done []RecipientResult) error
}

// DSN asks for delivery status notifications (RFC 3461). When any of it is set, each RCPT carries an ORCPT.
type DSN struct {
	Return   string // FULL or HDRS; empty: the relay's choice
	Envelope string // ENVID, printable ASCII up to 100 characters; empty: none
	Notify   string // NEVER, or SUCCESS, FAILURE, DELAY joined by commas; empty: the relay's choice
	// address to name as the original recipient (ORCPT), up to 256 octets; empty: each recipient's own
	Original string
}

// check refuses what must not become part of a command line, whoever let it come so far.
func (m *Message) check() *Error {
	if len(m.To) == 0 {
		return envelopeError("no recipients", nil)
	}
	if m.Body == nil || m.Body.Size() <= 0 {
		return messageError("the message is empty", nil)
	}
	if m.From != "" {
		if err := checkAddress(m.From); err != nil {
			return envelopeError("invalid sender address", err)
		}
	}
	for _, to := range m.To {
		if err := checkAddress(to); err != nil {
			return envelopeError("invalid recipient address", err)
		}
	}
	return m.DSN.check()
}

func (d DSN) check() *Error {
	switch {
	case d.Return != "" && d.Return != "FULL" && d.Return != "HDRS":
		return envelopeError("invalid DSN return type", fmt.Errorf("%q", d.Return))
	case len(d.Envelope) > 100 || strings.ContainsFunc(d.Envelope, func(c rune) bool {
		return c < ' ' ||
			c > '~'
	}):
		// RFC 3461 section 4.4
		return envelopeError("invalid DSN envelope id", fmt.Errorf("%q", d.Envelope))
	case len(d.Original) > 256 || !printable(d.Original):
		return envelopeError("invalid DSN original recipient", fmt.Errorf("%q", d.Original))
	}
	if d.Notify == "" || d.Notify == "NEVER" {
		return nil
	}
	for _, when := range strings.Split(d.Notify, ",") {
		if when != "SUCCESS" && when != "FAILURE" && when != "DELAY" {
			return envelopeError("invalid DSN notify condition", fmt.Errorf("%q", when))
		}
	}
	return nil
}

// checkAddress is the last guard before the wire, not a judgement of what an address should look like: it
// refuses whatever could end the path, start a parameter or a new command, or exceed RFC 5321 section
// 4.5.3.1.
func checkAddress(a string) error {
	if i := strings.IndexFunc(a, func(c rune) bool {
		return c <= ' ' || c == 0x7f || c == '<' || c == '>' ||
			c == 0xfffd
	}); i >= 0 {
		return fmt.Errorf("it contains %q", a[i])
	}
	at := strings.LastIndexByte(a, '@')
	switch {
	case at <= 0 || at == len(a)-1:
		return errors.New("it has no local part or no domain")
	case at > 64:
		return errors.New("its local part is longer than 64 bytes")
	case len(a) > 254:
		return errors.New("it is longer than 254 bytes")
	}
	return nil
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
