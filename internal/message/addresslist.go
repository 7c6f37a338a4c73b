package message

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/mail"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/encoding/htmlindex"
)

// ParseAddressList parses the value of a header such as To: display names, comments, quoted strings, encoded
// words and groups (RFC 5322 section 3.4). It also accepts common errors, such as special characters in an
// unquoted name. Lines may be folded. An empty value or group returns no addresses. Addresses are returned as
// written; [NormalizeAddress] reports whether mail can be sent to them.
func ParseAddressList(value string) ([]Address, error) {
	value = strings.TrimSpace(unfold(value))
	if value == "" {
		return nil, nil
	}
	parser := mail.AddressParser{WordDecoder: wordDecoder()}
	parsed, err := parser.ParseList(value)
	if err != nil {
		if list, ok := parseSloppyList(value); ok {
			return list, nil
		}
		return nil, errors.New("is not a list of addresses: " + strings.TrimPrefix(err.Error(), "mail: "))
	}
	var list []Address
	for _, a := range parsed {
		list = append(list, Address{Name: a.Name, Address: quoteLocalPart(a.Address)})
	}
	return list, nil
}

// parseSloppyList parses lists outside the grammar, such as "ann@x.example <ann@x.example>" and "Team [A]
// <a@x.example>". It never guesses: each entry must have exactly one valid address.
func parseSloppyList(value string) ([]Address, bool) {
	var list []Address
	for _, entry := range splitList(value) {
		name, address := "", strings.TrimSpace(stripComments(entry))
		if open := strings.LastIndexByte(entry, '<'); open >= 0 {
			inside, after, closed := strings.Cut(entry[open+1:], ">")
			if !closed || strings.TrimSpace(stripComments(after)) != "" {
				return nil, false
			}
			name, address = decodeText(strings.Trim(strings.TrimSpace(entry[:open]), `"`)), strings.TrimSpace(inside)
		}
		if address == "" && strings.TrimSpace(entry) == "" {
			continue
		}
		if _, err := NormalizeAddress(address); err != nil {
			return nil, false
		}
		list = append(list, Address{Name: name, Address: address})
	}
	return list, len(list) > 0
}

// bareName matches an entry of a list whose address is a name without a domain: "root (Cron Daemon)", "Cron
// <root>".
var bareName = regexp.MustCompile(
	`^(\s*|.*<\s*)([\w.!#$%&'*+/=?^{|}~-]+|"(?:[^"\\]|\\.)+")(\s*>?\s*(?:\(.*\)\s*)?)$`)

// withDomain adds the domain to the names of a list that have none.
func withDomain(value, domain string) string {
	entries := splitList(unfold(value))
	for i, entry := range entries {
		if parts := bareName.FindStringSubmatch(entry); parts != nil && !strings.HasPrefix(parts[2], "=?") {
			entries[i] = parts[1] + parts[2] + "@" + domain + parts[3]
		}
	}
	return strings.Join(entries, ",")
}

// splitList splits s at commas outside quotes, angle brackets and comments.
func splitList(s string) []string {
	var pieces []string
	start, depth := 0, 0
	quoted, angle := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && (quoted || depth > 0):
			i++
		case c == '"' && depth == 0:
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth > 0:
		case c == '<' || c == '>':
			angle = c == '<'
		case c == ',' && !angle:
			pieces = append(pieces, s[start:i])
			start = i + 1
		}
	}
	return append(pieces, s[start:])
}

// stripComments removes text in parentheses outside quotes (RFC 5322 section 3.2.2).
func stripComments(s string) string {
	var b strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"' && depth == 0:
			quoted = !quoted
		case c == '(' && !quoted:
			depth++
			continue
		case c == ')' && depth > 0:
			depth--
			continue
		}
		if depth == 0 {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// decodeText decodes the encoded words of an unstructured header. Text that cannot be decoded stays as it is.
func decodeText(value string) string {
	value = strings.TrimSpace(unfold(value))
	if decoded, err := wordDecoder().DecodeHeader(value); err == nil {
		value = decoded
	}
	return printable(value)
}

// printable makes text of a header safe for a line of a list or log: encoded words can hide line breaks.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// quoteLocalPart restores quotes that net/mail removed and the local part needs.
func quoteLocalPart(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return address
	}
	local := address[:at]
	for _, r := range local {
		if r != '.' && !isAtext(r) {
			return fmt.Sprintf(`"%s"%s`, quotedPairs.Replace(local), address[at:])
		}
	}
	if needsQuotes(local) {
		return `"` + local + `"` + address[at:]
	}
	return address
}

var quotedPairs = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// wordDecoder decodes the charsets of browsers. Unknown charsets pass through unchanged: only the addresses
// matter here.
func wordDecoder() *mime.WordDecoder {
	return &mime.WordDecoder{CharsetReader: func(charset string, input io.Reader) (io.Reader, error) {
		encoding, err := htmlindex.Get(charset)
		if err != nil {
			return input, nil
		}
		return encoding.NewDecoder().Reader(input), nil
	}}
}

// unfold removes the line breaks of a folded header value and keeps the white space after them (RFC 5322
// section 2.2.3).
func unfold(value string) string {
	if !strings.ContainsAny(value, "\r\n") {
		return value
	}
	return strings.NewReplacer("\r\n", "", "\r", "", "\n", "").Replace(value)
}
