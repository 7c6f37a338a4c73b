package message

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/api/fault"
)

// Limits of an additional header. Longer names break parsers; relays refuse longer values.
const (
	maxHeaderName  = 60
	maxHeaderValue = 64 << 10
)

// faults collects errors under the field names of the request.
type faults struct{ fields []fault.Field }

func (f *faults) add(key, format string, args ...any) {
	f.fields = append(f.fields, fault.Field{Key: key, Message: fmt.Sprintf(format, args...)})
}

func (f *faults) addError(key string, err error) {
	if err != nil {
		f.add(key, "%s", err)
	}
}

func (f *faults) err() error { return fault.InvalidFields(f.fields) }

// line checks text for a header. A line break would let an attacker add a header field.
func (f *faults) line(key, s string) bool {
	why := ""
	switch {
	case strings.ContainsAny(s, "\r\n"):
		why = "must not contain a line break"
	case strings.IndexByte(s, 0) >= 0:
		why = "must not contain a NUL"
	case !utf8.ValidString(s):
		why = "is not UTF-8"
	case strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		why = "must not contain control characters"
	}
	if why != "" {
		f.add(key, "%s", why)
	}
	return why == ""
}

// address checks an address and returns its normal form.
func (f *faults) address(key string, a Address) Address {
	f.line(key+".name", a.Name)
	normal, err := NormalizeAddress(a.Address)
	f.addError(key+".address", err)
	return Address{Name: a.Name, Address: normal}
}

func (f *faults) addresses(key string, list []Address) []Address {
	checked := make([]Address, len(list))
	for i, a := range list {
		checked[i] = f.address(fmt.Sprintf("%s[%d]", key, i), a)
	}
	return checked
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
		f.add("to", "at least one recipient is required")
	}
	result.To = DedupeAddresses(result.To)
	return result
}

// headerName checks the name of a field (RFC 5322 section 3.6.8).
func (f *faults) headerName(key, name string) bool {
	if name == "" || len(name) > maxHeaderName {
		f.add(key, "a header's name has 1 to %d characters", maxHeaderName)
		return false
	}
	if strings.ContainsFunc(name, notPrintable) || strings.Contains(name, ":") {
		f.add(key, "a header's name consists of printable ASCII without blanks and colons")
		return false
	}
	return true
}

// headerValue checks a value, and that each of its words fits into a line.
func (f *faults) headerValue(key, name, value string) bool {
	if !f.line(key, value) {
		return false
	}
	if len(value) > maxHeaderValue {
		f.add(key, "must not be longer than %d octets", maxHeaderValue)
		return false
	}
	for word := range strings.SplitSeq(value, " ") {
		if len(word)+len(name)+2 > maxLine && !needsEncoding(word) {
			f.add(key, "has a word that is too long for a line: at most %d octets", maxLine-len(name)-2)
			return false
		}
	}
	return true
}
