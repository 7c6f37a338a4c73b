package smtpsend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Message is one email and its envelope.
type Message struct {
	From string   // reverse path; empty for the null sender of bounces
	To   []string // recipients; at least one
	Body Body     // RFC 5322 content; line ends are made CRLF on the way out

	// ReturnPath returns the reverse path for one recipient. Each recipient then has its own transaction. If
	// nil, From is the reverse path of all.
	ReturnPath func(to string) string

	// the content has UTF-8 headers (RFC 6532): needs SMTPUTF8. So does a non-ASCII local part
	UTF8     bool
	EightBit bool // the content has 8-bit body parts: needs 8BITMIME
	DSN      DSN  // delivery reports to ask for; ignored by relays that do not offer DSN

	Labels Labels // ignored over SMTP

	// RequireTLS asks every relay on the way for verified TLS (REQUIRETLS, RFC 8689). If the relay does not
	// offer that over verified TLS, the message fails with Verdict Policy.
	RequireTLS bool

	// Bulk mail leaves a part of the relay's connections to other mail: a fifth, at least one of several.
	Bulk bool

	// Patience is how long the message waits for a connection, of this process or of all together. After it the
	// message fails with Verdict Throttle in PhaseConnect, and the relay has seen nothing. If zero, it waits
	// until the context ends.
	Patience time.Duration

	// BeforeDot is called once per transaction, before the terminating dot is written, with the recipients that
	// the relay accepted. Over an API it is called once per request, including one that is repeated with its
	// key. By then a large content has been written; a content of up to 16 KiB leaves with the dot. It records
	// what must be durable before delivery is possible. After an error the connection is dropped without the
	// dot, so nothing is delivered; Send's error wraps it. Optional.
	BeforeDot func(ctx context.Context, accepted []string) error

	// AtDot is called right before the dot is written, after BeforeDot: a process that was stopped in between
	// may have lost its lease. It must return immediately. An error has the same effect as BeforeDot's.
	// Optional.
	AtDot func() error

	// Answered is called after each transaction but the last, with the results so far, so that they are recorded
	// before the next transaction. An error ends the delivery: the remaining recipients fail with Verdict Soft.
	// Optional.
	Answered func(ctx context.Context, done []RecipientResult) error
}

// Labels are what a provider's API may keep with a message, and returns with its events.
type Labels struct {
	ID       string // the message's
	Account  string
	Bulk     bool // its lane
	Tags     []string
	Metadata json.RawMessage // an object, or empty
	// returns the text that proves the message to us; may be nil. Providers keep it as metadata.
	Proof func() string
	// how many of its attempts were answered before, so that a key against duplicates is used again only where
	// no answer was read
	Answered int
	// an attempt before is in doubt: the request must be the same where the provider knows it by its key
	Doubted bool
}

// DSN asks for delivery status notifications (RFC 3461). When any of it is set, each RCPT carries an ORCPT.
type DSN struct {
	Return   string // FULL or HDRS; empty for the relay's choice
	Envelope string // ENVID, printable ASCII up to 100 characters; empty if none
	Notify   string // NEVER, or SUCCESS, FAILURE, DELAY joined by commas; empty for the relay's choice
	// address to name as the original recipient (ORCPT), up to 256 octets; defaults to each recipient's own
	Original string
}

// Check refuses a message without recipients or content, and addresses that must not become part of a
// command line.
func (m *Message) Check() *Error {
	if len(m.To) == 0 {
		return refusal(nameEnvelope, "no recipients")
	}
	if m.Body == nil || m.Body.Size() <= 0 {
		return refusal(nameMessage, "the message is empty")
	}
	if m.From != "" {
		if err := checkAddress(m.From); err != nil {
			return refusal(nameEnvelope, "invalid sender address: %w", err)
		}
	}
	for _, to := range m.To {
		if err := checkAddress(to); err != nil {
			return refusal(nameEnvelope, "invalid recipient address: %w", err)
		}
	}
	return m.DSN.check()
}

func (d DSN) check() *Error {
	switch {
	case d.Return != "" && d.Return != "FULL" && d.Return != "HDRS":
		return refusal(nameEnvelope, "invalid DSN return type: %q", d.Return)
	case len(d.Envelope) > 100 || strings.ContainsFunc(d.Envelope, func(c rune) bool {
		return c < ' ' ||
			c > '~'
	}):
		return refusal(nameEnvelope, "invalid DSN envelope id: %q", d.Envelope) // RFC 3461 section 4.4
	case len(d.Original) > 256 || !printable(d.Original):
		return refusal(nameEnvelope, "invalid DSN original recipient: %q", d.Original)
	}
	if d.Notify == "" || d.Notify == "NEVER" {
		return nil
	}
	for when := range strings.SplitSeq(d.Notify, ",") {
		if when != "SUCCESS" && when != "FAILURE" && when != "DELAY" {
			return refusal(nameEnvelope, "invalid DSN notify condition: %q", when)
		}
	}
	return nil
}

// checkAddress is the last guard before the wire. It refuses whatever could end the path, start a parameter
// or a new command, or exceed RFC 5321 section 4.5.3.1. It does not check the syntax of an address.
func checkAddress(a string) error {
	forbidden := func(c rune) bool { return c <= ' ' || strings.ContainsRune("\x7f<>\ufffd", c) }
	if i := strings.IndexFunc(a, forbidden); i >= 0 {
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
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf })
}
