package message

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/mail"
	"strings"
	"unicode"

	"golang.org/x/text/encoding/htmlindex"
)

// ParseAddressList reads the value of a header such as To: display names, comments, quoted strings, encoded words and groups (RFC 5322
// section 3.4). Folded lines may be given as they are. An empty value or an empty group gives no addresses. The addresses come back as
// they were written; [NormalizeAddress] says whether mail can be sent to them.
func ParseAddressList(value string) ([]Address, error) {
	value = strings.TrimSpace(unfold(value))
	if value == "" {
		return nil, nil
	}
	parser := mail.AddressParser{WordDecoder: wordDecoder()}
	parsed, err := parser.ParseList(value)
	if err != nil {
		if group, ok := emptyGroup(value); ok {
			return group, nil
		}
		return nil, errors.New("is not a list of addresses: " + strings.TrimPrefix(err.Error(), "mail: "))
	}
	list := make([]Address, len(parsed))
	for i, a := range parsed {
		list[i] = Address{Name: a.Name, Address: quoteLocalPart(a.Address)}
	}
	return list, nil
}

// decodeText decodes the encoded words of an unstructured header for people to read. What cannot be decoded stays as it is.
func decodeText(value string) string {
	value = strings.TrimSpace(unfold(value))
	if decoded, err := wordDecoder().DecodeHeader(value); err == nil {
		value = decoded
	}
	return printable(value)
}

// printable makes text from a stranger's header fit for a line of a list or a log: encoded words can hide line breaks.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// emptyGroup recognises "undisclosed-recipients:;", which net/mail takes for an error when it is the whole list.
func emptyGroup(value string) ([]Address, bool) {
	name, rest, found := strings.Cut(value, ":")
	return nil, found && strings.TrimSpace(rest) == ";" && !strings.ContainsAny(name, "<>@,;")
}

// quoteLocalPart puts back the quotes that net/mail took off, where the local part is not valid without them.
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
	if strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") {
		return `"` + local + `"` + address[at:]
	}
	return address
}

var quotedPairs = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// wordDecoder decodes any charset a browser knows. An unknown one is passed through: a display name that reads badly is no reason to
// refuse the message, since only its addresses matter here.
func wordDecoder() *mime.WordDecoder {
	return &mime.WordDecoder{CharsetReader: func(charset string, input io.Reader) (io.Reader, error) {
		encoding, err := htmlindex.Get(charset)
		if err != nil {
			return input, nil
		}
		return encoding.NewDecoder().Reader(input), nil
	}}
}

// unfold removes the line breaks of a folded header value and keeps the white space after them (RFC 5322 section 2.2.3).
func unfold(value string) string {
	if !strings.ContainsAny(value, "\r\n") {
		return value
	}
	return strings.NewReplacer("\r\n", "", "\r", "", "\n", "").Replace(value)
}
