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

// maxRawHeader is the largest header a raw message may have, in octets; relays take less.
const maxRawHeader = 512 << 10

// Override is what replaces the matching headers of a raw message. Zero fields leave the message as it is.
type Override struct {
	Date        time.Time // required: the Date of a message that has none
	DefaultFrom Address   // author of a message that names none and has no From here

	From, Sender    Address
	To, Cc, ReplyTo []Address
	Bcc             []Address // recipients in place of those in the message's Bcc
	Envelope        *Envelope // nil: from the headers, after they are overridden

	Subject    string
	MessageID  string
	InReplyTo  string
	References []string
	Headers    []Header // each replaces all fields of its name
}

// FromRaw makes a message that somebody else built ready to send: every bare CR or LF becomes CRLF, Bcc and control headers are taken out,
// overrides are put in, Date, Message-ID and MIME-Version are added where they are missing, and parts that a relay might refuse or break,
// with octets above 127 or lines over 998 octets, are encoded unless they are signed. Nothing else changes. What is wrong with
// the message is reported under "raw", what is wrong with an override under its own name, all at once; any other error means that random
// (nil: crypto/rand) gave out or the override has no Date. raw is only read.
func FromRaw(raw []byte, o Override, random io.Reader) (*Composed, Control, error) {
	if random == nil {
		random = rand.Reader
	}
	if o.Date.IsZero() {
		return nil, Control{}, errors.New("take a raw message: the override has no date")
	}
	headerBytes, body, err := splitRaw(raw)
	if err != nil {
		return nil, Control{}, err
	}
	var f faults
	fields := f.parseFields(crlf(headerBytes))
	if err := f.err(); err != nil {
		return nil, Control{}, err
	}
	h := rawHeader{fields: fields}
	c := h.apply(&f, o)
	control := h.takeControl(&f) // after the overrides, which may bring some
	if err := f.err(); err != nil {
		return nil, Control{}, err
	}
	if err := h.complete(c, o, random); err != nil {
		return nil, Control{}, fmt.Errorf("take a raw message: %w", err)
	}
	h.assemble(c, body)
	return c, control, nil
}

// splitRaw finds where the header ends, whatever the line ends are.
func splitRaw(raw []byte) (header, body []byte, err error) {
	var f faults
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		f.add("raw", "is empty")
	case bytes.IndexByte(raw, 0) >= 0:
		f.add("raw", "contains a NUL byte")
	}
	if err := f.err(); err != nil {
		return nil, nil, err
	}
	if bytes.HasPrefix(raw, []byte("From ")) { // the line that mbox files put before each message
		_, raw = cutLine(raw)
	}
	for rest := raw; len(rest) > 0; {
		if len(raw)-len(rest) > maxRawHeader {
			f.add("raw", "has a header of more than %d KiB", maxRawHeader>>10)
			return nil, nil, f.err()
		}
		line, after := cutLine(rest)
		if len(line) == 0 {
			return raw[:len(raw)-len(rest)], after, nil
		}
		rest = after
	}
	return raw, nil, nil
}

// cutLine splits off one line, ended by CRLF, CR or LF.
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

// assemble encodes what any relay would not carry, writes the header and the body into one buffer, and looks at what they need.
func (h *rawHeader) assemble(c *Composed, body []byte) {
	needs := inspect(body)
	if needs.eightBit || needs.longLines {
		e := entity{header: *h, body: crlf(body)}
		e.messageToSevenBit(0, nil)
		*h, body = e.header, e.body
		needs = inspect(body)
	}
	size := 2 + len(body)
	for _, field := range h.fields {
		size += len(field.bytes)
	}
	bare := hasBareLineEnd(body)
	if bare {
		size += bytes.Count(body, []byte("\n")) + bytes.Count(body, []byte("\r"))
	}
	c.Raw = make([]byte, 0, size)
	for _, field := range h.fields {
		c.Raw = append(c.Raw, field.bytes...)
	}
	header := inspect(c.Raw)
	c.Raw = append(c.Raw, "\r\n"...)
	if bare {
		c.Raw = appendCRLF(c.Raw, body)
	} else {
		c.Raw = append(c.Raw, body...)
	}
	c.UTF8Header, c.EightBit, c.LongLines = header.eightBit, needs.eightBit, header.longLines || needs.longLines
	c.SMTPUTF8 = c.Envelope.needsSMTPUTF8() || header.eightBit && h.needsSMTPUTF8()
}

// needsSMTPUTF8 reports whether a header names an address that has no ASCII form. Other UTF-8 in it, such as a name, has always been sent
// without asking, and arrives.
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

// rawField is one field of a raw header with its folded lines and its last CRLF.
type rawField struct {
	name  string // in lower case
	bytes []byte
}

// value is the field's value, unfolded and trimmed.
func (f rawField) value() string {
	_, value, _ := strings.Cut(string(f.bytes), ":")
	return strings.TrimSpace(unfold(value))
}

// parseFields cuts a header with CRLF line ends into fields. A line that is no field is a fault: guessing where the header was meant to end
// would let a Bcc through.
func (f *faults) parseFields(header []byte) []rawField {
	var fields []rawField
	number := 0
	for len(header) > 0 {
		number++
		line, rest := cutLine(header)
		size := len(header) - len(rest)
		if line[0] == ' ' || line[0] == '\t' {
			if len(fields) == 0 {
				f.add("raw", "begins with a blank instead of a header")
				return nil
			}
			last := &fields[len(fields)-1]
			last.bytes = last.bytes[:len(last.bytes)+size]
			header = rest
			continue
		}
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 || bytes.ContainsFunc(line[:colon], notInName) {
			f.add("raw", "line %d of the header is not a header field", number)
			return nil
		}
		fields = append(fields, rawField{name: strings.ToLower(string(line[:colon])), bytes: header[:size]})
		header = rest
	}
	if len(fields) > 0 {
		fields[len(fields)-1].endLine()
	}
	return fields
}

// endLine adds the line end that a header without a body may lack.
func (f *rawField) endLine() {
	if !bytes.HasSuffix(f.bytes, []byte("\r\n")) {
		f.bytes = append(f.bytes[:len(f.bytes):len(f.bytes)], "\r\n"...)
	}
}

func notInName(r rune) bool { return r <= ' ' || r >= 0x7f }
