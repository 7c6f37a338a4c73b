package message

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/api/fault"
)

// Limits of an additional header. Longer names break parsers; relays refuse longer values.
const (
	maxHeaderName  = 60
	maxHeaderValue = 64 << 10
)

// faults collects errors under the field names of the request.
type faults struct{ fault.Fields }

func (f *faults) addError(key string, err error) {
	if err != nil {
		f.Add(key, "%s", err)
	}
}

func (f *faults) err() error { return fault.InvalidFields(f.Fields) }

// line checks text for a header.
func (f *faults) line(key, s string) bool {
	why := lineFault(s)
	if why != "" {
		f.Add(key, "%s", why)
	}
	return why == ""
}

// lineFault returns what is wrong with text for a header. A line break would let attackers add a field.
func lineFault(s string) string {
	switch {
	case strings.ContainsAny(s, "\r\n"):
		return "must not contain a line break"
	case strings.IndexByte(s, 0) >= 0:
		return "must not contain a NUL"
	case !utf8.ValidString(s):
		return "is not UTF-8"
	case strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return "must not contain control characters"
	}
	return ""
}

// IsLine reports whether a text is one line that people can read: UTF-8 without control characters (C0, DEL,
// C1) and without the separators of lines and paragraphs.
func IsLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	})
}

// upright returns a text without the marks that turn the direction of what follows it around, such as the
// rest of a header. Isolates stay if each has its end.
func upright(s string) string {
	if isASCII(s) {
		return s
	}
	open, balanced := 0, true
	for _, r := range s {
		if r >= '\u2066' && r <= '\u2068' {
			open++
		} else if r == '\u2069' {
			open--
			balanced = balanced && open >= 0
		}
	}
	balanced = balanced && open == 0
	return strings.Map(func(r rune) rune {
		if r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' && !balanced {
			return -1
		}
		return r
	}, s)
}

// address checks an address and returns its normal form.
func (f *faults) address(key string, a Address) Address {
	return f.named(func() string { return key }, a)
}

func (f *faults) addresses(key string, list []Address) []Address {
	checked := make([]Address, len(list))
	for i, a := range list {
		checked[i] = f.named(func() string { return fmt.Sprintf("%s[%d]", key, i) }, a)
	}
	return checked
}

func (f *faults) named(key func() string, a Address) Address {
	if why := lineFault(a.Name); why != "" {
		f.Add(key()+".name", "%s", why)
	}
	normal, err := NormalizeAddress(a.Address)
	if err != nil {
		f.addError(key()+".address", err)
	}
	return Address{Name: a.Name, Address: normal}
}

// envelope checks the given envelope. Missing values come from the headers: the author is the return path,
// and each recipient is used once.
func (f *faults) envelope(given *Envelope, author string, recipients ...[]Address) Envelope {
	result := Envelope{From: author}
	if given != nil {
		result.From = given.From
		if given.From != "" {
			normal, err := NormalizeAddress(given.From)
			f.addError("envelope.from", err)
			result.From = normal
		}
		for i, to := range given.To {
			normal, err := NormalizeAddress(to)
			f.addError(fmt.Sprintf("envelope.to[%d]", i), err)
			result.To = append(result.To, normal)
		}
	}
	if len(result.To) == 0 {
		for _, list := range recipients {
			for _, a := range list {
				result.To = append(result.To, a.Address)
			}
		}
	}
	if len(result.To) == 0 {
		f.Add("to", "at least one recipient is required")
	}
	result.To = DedupeAddresses(result.To)
	return result
}

// headerName checks the name of a field (RFC 5322 section 3.6.8).
func (f *faults) headerName(key, name string) bool {
	if name == "" || len(name) > maxHeaderName {
		f.Add(key, "must have a name of 1 to %d characters", maxHeaderName)
		return false
	}
	if strings.ContainsFunc(name, notPrintable) || strings.Contains(name, ":") {
		f.Add(key, "must have a name of printable ASCII without spaces and colons")
		return false
	}
	return true
}

// headerValue checks a value, and that each of its words fits into a line.
func (f *faults) headerValue(name, value string) bool {
	if len(name)+len(value)+2 <= maxLine && lineFault(value) == "" {
		return true
	}
	key := "headers." + name
	if !f.line(key, value) {
		return false
	}
	if len(value) > maxHeaderValue {
		f.Add(key, "must not be longer than %d octets", maxHeaderValue)
		return false
	}
	for word := range strings.SplitSeq(value, " ") {
		if len(word)+len(name)+2 > maxLine && !needsEncoding(word) {
			f.Add(key, "has a word that is too long for a line of at most %d octets", maxLine-len(name)-2)
			return false
		}
	}
	return true
}
