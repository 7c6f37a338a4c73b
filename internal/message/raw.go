package message

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// maxRawHeader is the maximum header size of a raw message, in octets. Relays accept less.
const maxRawHeader = 512 << 10

// Override replaces the matching headers of a raw message. Zero fields change nothing.
type Override struct {
	Date        time.Time      // required: the Date of a message without one
	DefaultFrom Address        // author of a message without one, if From is zero; its domain completes names
	Zone        *time.Location // for control headers without an offset; defaults to UTC

	From, Sender    Address
	To, Cc, ReplyTo []Address
	Bcc             []Address // recipients that replace the message's Bcc
	Envelope        *Envelope // nil if made from the headers after the overrides

	Subject    string
	MessageID  string
	InReplyTo  string
	References []string
	Headers    []Header // each replaces all fields of its name
}

// FromRaw prepares a foreign raw message for sending. Bare CR and LF become CRLF. It removes Bcc, control
// headers and what an earlier delivery added, such as Return-Path. It applies overrides, and adds missing
// Date, Message-ID and MIME-Version. Header fields and parts with octets above 127 or lines over 998 octets
// are encoded unless signed, because a relay might refuse or break them. Nothing else changes. Errors in the
// message are reported under "raw", errors in an override under its own name, all together. Any other error
// means that random failed (nil means crypto/rand) or that the override has no Date. raw is only read.
func FromRaw(raw []byte, o Override, random io.Reader) (*Composed, Control, error) {
	random = cmp.Or(random, rand.Reader)
	if o.Date.IsZero() {
		return nil, Control{}, errors.New("take a raw message: the override has no date")
	}
	var f faults
	header, body := f.splitRaw(raw)
	h := rawHeader{fields: slices.DeleteFunc(f.parseFields(crlf(header)), rawField.isOfDelivery)}
	if err := f.err(); err != nil {
		return nil, Control{}, err
	}
	c := h.apply(&f, o)
	var controls faults
	control := h.takeControl(&controls, cmp.Or(o.Zone, time.UTC)) // after the overrides, which may add some
	for _, wrong := range controls.Fields {
		f.Add("raw", "its %s %s", strings.TrimPrefix(wrong.Key, "headers."), wrong.Message)
	}
	body = h.toSevenBit(&f, body)
	if err := f.err(); err != nil {
		return nil, Control{}, err
	}
	if err := h.complete(c, o, random); err != nil {
		return nil, Control{}, fmt.Errorf("take a raw message: %w", err)
	}
	c.Raw = (&entity{header: h, body: body}).bytes()
	c.EightBit = !isASCII(body)
	c.SMTPUTF8 = c.Envelope.needsSMTPUTF8() || !isASCII(c.Raw[:h.size()])
	return c, control, nil
}

// splitRaw separates header and body, with any line ends.
func (f *faults) splitRaw(raw []byte) (header, body []byte) {
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		f.Add("raw", "is empty")
		return nil, nil
	case bytes.IndexByte(raw, 0) >= 0:
		f.Add("raw", "contains a NUL byte")
		return nil, nil
	}
	if bytes.HasPrefix(raw, []byte("From ")) { // the line that mbox files put before each message
		_, raw = cutLine(raw)
	}
	for rest := raw; len(rest) > 0; {
		if len(raw)-len(rest) > maxRawHeader {
			f.Add("raw", "has a header of more than %d KiB", maxRawHeader>>10)
			return nil, nil
		}
		line, after := cutLine(rest)
		if len(line) == 0 {
			return raw[:len(raw)-len(rest)], after
		}
		rest = after
	}
	return raw, nil
}

// cutLine splits off a line that ends with CRLF, CR or LF.
func cutLine(text []byte) (line, rest []byte) {
	i := bytes.IndexAny(text, "\r\n")
	if i < 0 {
		return text, nil
	}
	line, rest = text[:i], text[i+1:]
	if text[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return line, rest
}

// toSevenBit encodes fields and parts that some relays refuse. It returns the body.
func (h *rawHeader) toSevenBit(f *faults, body []byte) []byte {
	e := entity{header: *h, body: crlf(body)}
	e.messageToSevenBit(f, 0, nil)
	*h = e.header
	return e.body
}

// rawField is a field of a raw header with its folded lines and its last CRLF.
type rawField struct {
	name  string // in lower case
	bytes []byte
}

// value is the field's value in UTF-8, unfolded and trimmed.
func (f rawField) value() string {
	_, value, _ := strings.Cut(string(f.bytes), ":")
	return strings.TrimSpace(unfold(ValidText(value)))
}

// parseFields splits a header with CRLF line ends into fields. A line that is not a field is an error: a
// guess of the header's end could let a Bcc through.
func (f *faults) parseFields(header []byte) []rawField {
	var fields []rawField
	number := 0
	for len(header) > 0 {
		number++
		line, rest := cutLine(header)
		size := len(header) - len(rest)
		colon := bytes.IndexByte(line, ':')
		switch {
		case bytes.HasPrefix(line, []byte(" ")) || bytes.HasPrefix(line, []byte("\t")):
			if len(fields) == 0 {
				f.Add("raw", "starts with a space instead of a header")
				return nil
			}
			last := &fields[len(fields)-1]
			last.bytes = last.bytes[:len(last.bytes)+size]
		case colon <= 0 || bytes.ContainsFunc(line[:colon], notPrintable):
			f.Add("raw", "line %d of the header is not a header field", number)
			return nil
		default:
			fields = append(fields, rawField{name: strings.ToLower(string(line[:colon])), bytes: header[:size]})
		}
		header = rest
	}
	if len(fields) > 0 { // a header without a body may lack its last line end
		last := &fields[len(fields)-1]
		if !bytes.HasSuffix(last.bytes, []byte("\r\n")) {
			last.bytes = append(slices.Clip(last.bytes), "\r\n"...)
		}
	}
	return fields
}

// isOfDelivery reports whether a field was added when the message was delivered or kept in a mailbox. The
// next delivery writes its own (RFC 5321 section 4.4, RFC 8601 section 5).
func (f rawField) isOfDelivery() bool {
	return slices.Contains([]string{"return-path", "delivered-to", "x-original-to", "envelope-to",
		"authentication-results", "status", "x-status", "x-uid", "x-mozilla-status", "x-mozilla-status2",
		"content-length"}, f.name)
}

// notPrintable reports whether r is not printable ASCII, or a blank.
func notPrintable(r rune) bool { return r <= ' ' || r >= 0x7f }
