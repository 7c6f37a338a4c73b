package apisend

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// lacksInMIME names what providers garble in MIME: header fields in UTF-8 (RFC 6532). It returns "" if there
// is nothing to name.
func (m *mail) lacksInMIME() string {
	header, _, _ := bytes.Cut(m.raw, []byte("\r\n\r\n"))
	if !isASCII(string(header)) {
		return "a header field that isn't ASCII"
	}
	return ""
}

// lacksInText is lacksInMIME for providers that take MIME as a JSON string, which must be Unicode.
func (m *mail) lacksInText() string {
	switch what := m.lacksInMIME(); {
	case what != "":
		return what
	case !utf8.Valid(m.raw):
		return "8-bit content that isn't UTF-8"
	case bytes.IndexByte(m.raw, 0) >= 0:
		return "a NUL"
	}
	return ""
}

// plainTags returns the tags that a header field and a comma-separated list can hold.
func (m *mail) plainTags(most, longest int) []string {
	return slices.DeleteFunc(m.tags(most, longest), func(tag string) bool {
		return strings.ContainsFunc(tag, func(r rune) bool { return r < ' ' || r > '~' || r == ',' })
	})
}

// unless returns the refusal of an answer with 2xx from another program; nil if it has the form of the API.
func unless(form bool) *refusal {
	if form {
		return nil
	}
	return &refusal{meaning: badKey, text: "the answer isn't from the provider's API"}
}
