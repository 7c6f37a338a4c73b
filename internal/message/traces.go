package message

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Erased replaces the address of an erased person. No mail can be sent to it (RFC 2606).
const Erased = "erased@erased.invalid"

// Traces finds one address in texts and replaces it by [Erased]. Case does not matter. It knows the address
// as it is in URLs (%40, %2B) and with its domain in Unicode, and does not take "joann@example.com" or
// "ann@example.community" for ann@example.com. It is safe for concurrent use.
type Traces struct {
	address string
	needle  string // a part of every spelling, in lower case, for a quick look
	find    *regexp.Regexp
}

// NewTraces returns the traces of an address. It returns NormalizeAddress' error for an invalid one.
func NewTraces(address string) (*Traces, error) {
	normal, err := NormalizeAddress(strings.TrimSpace(address))
	if err != nil {
		return nil, err
	}
	normal = strings.ToLower(normal)
	at := strings.LastIndexByte(normal, '@')
	domains := regexp.QuoteMeta(normal[at+1:])
	if unicode, err := idna.ToUnicode(normal[at+1:]); err == nil && unicode != normal[at+1:] {
		domains += "|" + regexp.QuoteMeta(unicode)
	}
	local := strings.Join(AddressForms(regexp.QuoteMeta(normal[:at])), "|")
	local = "(?:" + strings.ReplaceAll(local, `\+`, `(?:\+|%2B)`) + ")"
	t := &Traces{address: normal, find: regexp.MustCompile(`(?i)` + local + `(?:@|%40)(?:` + domains + `)`)}
	for _, part := range strings.FieldsFunc(normal[:at], func(r rune) bool { return !plain(r) }) {
		if len(part) > len(t.needle) {
			t.needle = part
		}
	}
	return t, nil
}

// plain reports whether a character has one lower case and is never escaped.
func plain(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }

// Address returns the address in the form in which addresses are compared: normal, in lower case.
func (t *Traces) Address() string { return t.address }

// Is reports whether an address is the one that is searched for.
func (t *Traces) Is(address string) bool { return Comparable(address) == t.address }

// Comparable returns an address in the form in which addresses are compared: normal, in lower case. One
// that is invalid is returned in lower case.
func Comparable(address string) string {
	normal, err := NormalizeAddress(strings.TrimSpace(address))
	if err != nil {
		normal = address
	}
	return strings.ToLower(normal)
}

// In reports whether a text has the address. In JSON it may be missed behind an escaped character; see
// CoverJSON.
func (t *Traces) In(text string) bool { return len(t.places(text, 1)) > 0 }

// Cover returns a text with Erased instead of the address.
func (t *Traces) Cover(text string) string {
	places := t.places(text, -1)
	for i := len(places) - 1; i >= 0; i-- {
		text = text[:places[i][0]] + Erased + text[places[i][1]:]
	}
	return text
}

// quoted matches the strings of JSON.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// CoverJSON returns JSON with Erased instead of the address in all of its strings, and reports whether it was
// in one. All else stays as it was written.
func (t *Traces) CoverJSON(raw string) (string, bool) {
	if t.needle != "" && !strings.Contains(strings.ToLower(raw), t.needle) {
		return raw, false
	}
	found := false
	covered := quoted.ReplaceAllStringFunc(raw, func(literal string) string {
		var text string
		if json.Unmarshal([]byte(literal), &text) != nil || !t.In(text) {
			return literal
		}
		found = true
		again, _ := json.Marshal(t.Cover(text)) // a string: can't fail
		return string(again)
	})
	return covered, found
}

// places returns where the address is in a text, n times at most; -1: all.
func (t *Traces) places(text string, n int) (places [][]int) {
	if t.needle != "" && !strings.Contains(strings.ToLower(text), t.needle) {
		return nil
	}
	for _, place := range t.find.FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:place[0]])
		after := text[place[1]:]
		next, size := utf8.DecodeRuneInString(after)
		if next == '.' {
			next, _ = utf8.DecodeRuneInString(after[size:])
		}
		longer := place[1] < len(text) && (inName(next) || next == '-')
		if place[0] > 0 && (inName(before) || strings.ContainsRune(".-+", before)) || longer {
			continue
		}
		if places = append(places, place); len(places) == n {
			break
		}
	}
	return places
}

// inName reports whether a character next to an address makes it a longer one.
func inName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' ||
		r >= utf8.RuneSelf && r != utf8.RuneError
}
