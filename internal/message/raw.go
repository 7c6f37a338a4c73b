package message

import (
	"bytes"
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
	Date        time.Time // required: the Date of a message without one
	DefaultFrom Address   // author of a message without one, if From is zero

	From, Sender    Address
	To, Cc, ReplyTo []Address
	Bcc             []Address // recipients that replace the message's Bcc
	Envelope        *Envelope // nil: made from the headers after the overrides

	Subject    string
	MessageID  string
	InReplyTo  string
	References []string
	Headers    []Header // each replaces all fields of its name
}

// FromRaw prepares a foreign raw message for sending. Bare CR and LF become CRLF. Bcc and control headers are
// removed. Overrides are applied. Missing Date, Message-ID and MIME-Version are added. Parts with octets
// above 127 or lines over 998 octets are encoded unless signed, because a relay might refuse or break them.
// Nothing else changes. Faults of the message are reported under "raw", faults of an override under its own
// name, all together. Any other error means that random failed (nil: crypto/rand) or that the override has no
// Date. raw is only read.
func FromRaw(raw []byte, o Override, random io.Reader) (*Composed, Control, error) {
	if random == nil {
		random = rand.Reader
	}
	if o.Date.IsZero() {
		return nil, Control{}, errors.New("take a raw message: the override has no date")
	}
	var f faults
	header, body := f.splitRaw(raw)
	h := rawHeader{fields: f.parseFields(crlf(header))}
	if err := f.err(); err != nil {
		return nil, Control{}, err
	}
	c := h.apply(&f, o)
	control := h.takeControl(&f) // after the overrides, which may add some
	if err := f.err(); err != nil {
		return nil, Control{}, err
	}
	if err := h.complete(c, o, random); err != nil {
		return nil, Control{}, fmt.Errorf("take a raw message: %w", err)
	}
	h.assemble(c, body)
	return c, control, nil
}

// splitRaw separates header and body, with any line ends.
func (f *faults) splitRaw(raw []byte) (header, body []byte) {
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		f.add("raw", "is empty")
		return nil, nil
	case bytes.IndexByte(raw, 0) >= 0:
		f.add("raw", "contains a NUL byte")
		return nil, nil
	}
	if bytes.HasPrefix(raw, []byte("From ")) { // the line that mbox files put before each message
		_, raw = cutLine(raw)
	}
	for rest := raw; len(rest) > 0; {
		if len(raw)-len(rest) > maxRawHeader {
			f.add("raw", "has a header of more than %d KiB", maxRawHeader>>10)
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

// assemble encodes parts that some relays refuse, writes header and body into one buffer, and determines the
// required relay features.
func (h *rawHeader) assemble(c *Composed, body []byte) {
	needs := inspect(body)
	if needs.eightBit || needs.longLines {
		e := entity{header: *h, body: crlf(body)}
		e.messageToSevenBit(0, nil)
		*h, body = e.header, e.body
		needs = inspect(body)
	}
	c.Raw = (&entity{header: *h, body: body}).bytes()
	header := inspect(c.Raw[:h.size()])
	c.UTF8Header, c.EightBit, c.LongLines = header.eightBit, needs.eightBit, header.longLines || needs.longLines
	c.SMTPUTF8 = c.Envelope.needsSMTPUTF8() || header.eightBit && h.needsSMTPUTF8()
}

// needsSMTPUTF8 reports whether a header has an address without ASCII form. Other UTF-8, such as a name, is
// usually sent without SMTPUTF8 and arrives.
func (h *rawHeader) needsSMTPUTF8() bool {
	return slices.ContainsFunc(h.fields, func(f rawField) bool {
		if !addressFields[f.name] || isASCII(f.bytes) {
			return false
		}
		list, err := ParseAddressList(f.value())
		return err == nil && slices.ContainsFunc(list, func(a Address) bool {
			normal, err := NormalizeAddress(a.Address)
			return err == nil && NeedsSMTPUTF8(normal)
		})
	})
}

// addressFields are the fields of addresses (RFC 5322 section 3.6).
var addressFields = map[string]bool{
	"from": true, "sender": true, "reply-to": true, "to": true, "cc": true,
	"resent-from": true, "resent-sender": true, "resent-to": true, "resent-cc": true,
}

// rawField is a field of a raw header with its folded lines and its last CRLF.
type rawField struct {
	name  string // in lower case
	bytes []byte
}

// value is the field's value, unfolded and trimmed.
func (f rawField) value() string {
	_, value, _ := strings.Cut(string(f.bytes), ":")
	return strings.TrimSpace(unfold(value))
}

// parseFields splits a header with CRLF line ends into fields. A line that is not a field is a fault: a guess
// of the header's end could let a Bcc through.
func (f *faults) parseFields(header []byte) []rawField {
	var fields []rawField
	number := 0
	for len(header) > 0 {
		number++
		line, rest := cutLine(header)
		size := len(header) - len(rest)
		colon := bytes.IndexByte(line, ':')
		switch {
		case line[0] == ' ' || line[0] == '\t':
			if len(fields) == 0 {
				f.add("raw", "begins with a blank instead of a header")
				return nil
			}
			last := &fields[len(fields)-1]
			last.bytes = last.bytes[:len(last.bytes)+size]
		case colon <= 0 || bytes.ContainsFunc(line[:colon], notPrintable):
			f.add("raw", "line %d of the header is not a header field", number)
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

// notPrintable reports whether r is no printable ASCII, or a blank.
func notPrintable(r rune) bool { return r <= ' ' || r >= 0x7f }
