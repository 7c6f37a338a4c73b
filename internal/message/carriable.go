package message

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// structuredFields are the fields whose value has a syntax (RFC 5322, RFC 2045), apart from List-* and those
// with parameters. Any other value is text.
var structuredFields = map[string]bool{
	"message-id": true, "in-reply-to": true, "references": true, "resent-message-id": true, "content-id": true,
	"date": true, "resent-date": true, "received": true, "keywords": true,
	"mime-version": true, "content-transfer-encoding": true, "auto-submitted": true,
}

// addressFields are the fields of addresses (RFC 5322 section 3.6, RFC 8098 section 2.1).
var addressFields = map[string]bool{
	"from": true, "sender": true, "reply-to": true, "to": true, "cc": true,
	"resent-from": true, "resent-sender": true, "resent-to": true, "resent-cc": true, "resent-reply-to": true,
	"disposition-notification-to": true, "return-receipt-to": true, "errors-to": true,
}

// makeCarriable writes the fields that not every relay carries in ASCII (RFC 5322) and in lines of at most
// 998 octets. The others stay byte for byte, since signatures cover them; so does UTF-8 in a signed header,
// which needs SMTPUTF8 then. It reports whether anything changed. A field that can't be folded is a fault.
func (h *rawHeader) makeCarriable(f *faults) (changed bool) {
	signed := h.isSigned()
	for i, field := range h.fields {
		ascii := isASCII(field.bytes) || signed && utf8.Valid(field.bytes)
		if ascii && !inspect(field.bytes).longLines {
			continue
		}
		name := string(field.bytes[:len(field.name)])
		if h.fields[i].bytes = field.carriable(name); inspect(h.fields[i].bytes).longLines {
			f.Add("raw", "the header %.100s can't be folded into lines of %d octets (RFC 5322 section "+
				"2.1.1)", name, maxLine)
		}
		changed = true
	}
	return changed
}

// carriable is a field in ASCII, folded. Only a local part of an address stays UTF-8: it has no ASCII form.
func (f rawField) carriable(name string) []byte {
	var w headerWriter
	w.begin(name)
	value := f.value()
	switch {
	case f.name == "content-type" || f.name == "content-disposition":
		w.lexemes(asciiParameters(lexemes(value)))
	case addressFields[f.name] || structuredFields[f.name] || strings.HasPrefix(f.name, "list-"):
		w.lexemes(asciiStructure(lexemes(value), addressFields[f.name]))
	case isSignature(f.name):
		w.lexemes(words(value))
	default:
		w.lexemes(encodeText(words(value)))
	}
	w.end()
	return w.buf
}

// asciiStructure prepares a structured value for a header in ASCII: phrases and comments become encoded
// words, domains A-labels, and URLs are escaped. In a field of addresses a local part may stay UTF-8.
func asciiStructure(list []lexeme, addresses bool) []lexeme {
	named := false // the word is part of a name of an address in brackets, or of a group
	for i, l := range slices.Backward(list) {
		if !l.isWord() && l.kind != commentLexeme {
			named = l.kind == angleLexeme || l.text == ":"
		}
		ok := false
		switch {
		case l.leaves() || l.encodes():
			continue
		case l.kind == angleLexeme:
			l.text, ok = asciiAngle(l.text, addresses)
		case !named && strings.Contains(l.text, "@"):
			l.text, ok = asciiAddress(l.text, addresses)
		default:
			ok = !addresses && isASCII(l.text) // too long, and no text
		}
		if l.kind = finalLexeme; ok {
			list[i] = l
		}
	}
	return encodeText(list)
}

// asciiAngle is an address, an id or a URL in angle brackets, in ASCII. ok is false if it has no such form.
func asciiAngle(text string, addresses bool) (ascii string, ok bool) {
	inner, closed := strings.CutSuffix(text[1:], ">")
	if !closed || isASCII(inner) {
		return text, closed
	}
	if scheme, rest, isURL := strings.Cut(inner, ":"); isURL && isHostname(scheme) {
		if rest, isPath := strings.CutPrefix(rest, "//"); isPath {
			host := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(r rune) bool {
				return !strings.ContainsRune("/?#:", r)
			}))]
			if domain, err := normalizeDomain(host); err == nil {
				inner = scheme + "://" + domain + rest[len(host):]
			}
		}
		return "<" + escape(inner, '%', visible) + ">", true
	}
	inner, ok = asciiAddress(inner, addresses)
	return "<" + inner + ">", ok
}

// asciiAddress writes the domain of an address or id as A-labels. A local part in UTF-8 stays if it may, and
// is escaped otherwise: in an id it has no meaning.
func asciiAddress(address string, mayStay bool) (ascii string, ok bool) {
	at := strings.LastIndexByte(address, '@') + 1
	local, domain := address[:at], address[at:]
	if !isASCII(domain) {
		var err error
		if domain, err = normalizeDomain(domain); err != nil {
			return "", false
		}
	}
	if !isASCII(local) {
		if !mayStay {
			local = escape(local, '=', visible)
		} else if _, err := NormalizeAddress(address); err != nil {
			return "", false
		}
	}
	return local + domain, true
}

// asciiParameters prepares the value of a Content-Type or Content-Disposition for a header in ASCII.
func asciiParameters(list []lexeme) []lexeme {
	leave := func(list []lexeme) bool {
		return !slices.ContainsFunc(list, func(l lexeme) bool { return !l.leaves() })
	}
	var out []lexeme
	for whole := leave(list); len(list) > 0; {
		end := 1
		for end < len(list) && list[end].text != ";" {
			end++
		}
		field := list[:end]
		list = list[end:]
		var comments []lexeme
		var text strings.Builder
		for _, l := range field[1:] {
			if l.kind == commentLexeme {
				comments = append(comments, l)
			} else {
				text.WriteString(l.space + l.text)
			}
		}
		name, value, found := strings.Cut(strings.TrimLeft(text.String(), " \t"), "=")
		leaves := leave(field) && (whole || !strings.Contains(name, "*"))
		if leaves || field[0].text != ";" || !found || !isASCII(name) {
			out = append(out, asciiStructure(field, false)...)
			continue
		}
		if value = strings.Trim(value, " \t"); strings.HasPrefix(value, `"`) {
			value = lexeme{kind: quotedLexeme, text: value}.content()
		}
		for _, p := range asciiParameter(strings.TrimRight(name, " \t"), value) {
			out = append(out, lexeme{kind: specialLexeme, text: ";"}, lexeme{atomLexeme, " ", p.String()})
		}
		out = append(out, asciiStructure(comments, false)...)
	}
	return out
}

// asciiParameter writes a parameter as RFC 2231 has it. Its name may have the asterisks of that RFC.
func asciiParameter(name, value string) []parameter {
	base, section, starred := strings.Cut(name, "*")
	switch {
	case !starred && isASCII(value):
		return continued(name, value)
	case !starred:
		return extended(name, value)
	case section == "":
		if parts := strings.SplitN(value, "'", 3); len(parts) == 3 {
			q := strings.NewReplacer("_", "=5F", "%", "=").Replace(escape(parts[2], '%', visible))
			if decoded, err := wordDecoder().Decode("=?" + parts[0] + "?Q?" + q + "?="); err == nil {
				value = ValidText(decoded)
			}
		}
		return extended(base, value)
	}
	number, isExtended := strings.CutSuffix(section, "*")
	if isExtended {
		value = escape(value, '%', visible)
	} else if value = escape(value, '%', parameterSafe); number == "0" {
		value = "utf-8''" + value
	}
	return []parameter{{name: base + "*" + number + "*", value: value, extended: true}}
}

// visible is the printable ASCII.
const visible = alphanumeric + "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ "

// ValidText returns text in UTF-8. It reads octets of another charset as windows-1252, in which all but five
// have a character. Those keep their number.
func ValidText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			if r = charmap.Windows1252.DecodeByte(s[i]); r == utf8.RuneError {
				r = rune(s[i])
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}
