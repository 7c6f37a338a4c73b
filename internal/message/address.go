package message

import (
	"errors"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// Address is a mailbox as a header names it (RFC 5322 section 3.4).
type Address struct {
	Name    string // display name; empty if none
	Address string // addr-spec, such as "ann@example.com"
}

// Limits of RFC 5321 section 4.5.3.1, in octets. A path may have 256 octets including its angle brackets.
const (
	maxLocalPart = 64
	maxAddress   = 254
	maxLabel     = 63
)

// NormalizeAddress returns the normal form of s, for sending and for comparing. The domain becomes a
// lower-case A-label (IDNA2008). The local part keeps its case: only its own server may ignore case. Unneeded
// quotes are removed, and its letters are composed (NFC, RFC 6532 section 3.1). A domain literal, comment,
// display name, space or control character is an error. The error text follows a field's name: "is not a
// valid email address: it has no @".
func NormalizeAddress(s string) (string, error) {
	at := strings.LastIndexByte(s, '@')
	switch {
	case s == "":
		return "", errors.New("is required")
	case at < 0:
		return "", badAddress("it has no @")
	case !utf8.ValidString(s):
		return "", badAddress("it is not UTF-8")
	case len(s) > 2*maxAddress: // checked first; a longer one has no valid form
		return "", badAddress("it is longer than 254 octets")
	}
	local, err := normalizeLocalPart(s[:at])
	if err != nil {
		return "", err
	}
	domain, err := normalizeDomain(s[at+1:])
	if err != nil {
		return "", err
	}
	if len(local)+1+len(domain) > maxAddress {
		return "", badAddress("it is longer than 254 octets")
	}
	if local == s[:at] && domain == s[at+1:] {
		return s, nil
	}
	return local + "@" + domain, nil
}

// AddressForms returns an address in normal form, and in the form with decomposed letters, if it is another
// one: older records may have it.
func AddressForms(normal string) []string {
	if apart := norm.NFD.String(normal); apart != normal {
		return []string{normal, apart}
	}
	return []string{normal}
}

// DedupeAddresses removes later addresses whose normal form equals an earlier one. The order stays. An
// address without a normal form is compared as written.
func DedupeAddresses(addresses []string) []string {
	if len(addresses) == 1 {
		return addresses
	}
	seen := make(map[string]bool, len(addresses))
	kept := make([]string, 0, len(addresses))
	for _, address := range addresses {
		key, err := NormalizeAddress(address)
		if err != nil {
			key = address
		}
		if !seen[key] {
			seen[key] = true
			kept = append(kept, address)
		}
	}
	return kept
}

// NeedsSMTPUTF8 reports whether an address in normal form needs a relay with SMTPUTF8 (RFC 6531). Its local
// part is not ASCII, and a local part has no ASCII form.
func NeedsSMTPUTF8(address string) bool { return !isASCII(address) }

func normalizeLocalPart(local string) (string, error) {
	quoted := len(local) >= 2 && local[0] == '"' && local[len(local)-1] == '"'
	if quoted {
		local = local[1 : len(local)-1]
	}
	if local = norm.NFC.String(local); local == "" {
		return "", badAddress("nothing stands before the @")
	}
	if len(local) > maxLocalPart {
		return "", badAddress("the part before the @ is longer than 64 octets")
	}
	for _, r := range local {
		if r != '.' && !isAtext(r) {
			return "", badAddress(badCharacter(r))
		}
	}
	if !needsQuotes(local) {
		return local, nil
	}
	if !quoted { // such addresses exist (docomo.ne.jp had them), and are valid only in quotes
		return "", badAddress("the part before the @ starts or ends with a dot, or has two dots in a row")
	}
	if len(local)+2 > maxLocalPart {
		return "", badAddress("the part before the @ is longer than 64 octets")
	}
	return `"` + local + `"`, nil
}

// needsQuotes reports whether the dots of a local part are valid only in quotes.
func needsQuotes(local string) bool {
	return strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..")
}

func normalizeDomain(domain string) (string, error) {
	switch {
	case domain == "":
		return "", badAddress("nothing stands after the @")
	case domain[0] == '[':
		return "", badAddress("the domain can't be an IP address")
	}
	for _, r := range domain {
		if r <= ' ' || r == 0x7f || r == '<' || r == '>' {
			return "", badAddress(badCharacter(r))
		}
	}
	var err error
	lower := strings.ToLower(domain)
	if !isASCII(domain) || strings.Contains(lower, "xn--") {
		lower, err = idna.Lookup.ToASCII(domain)
	}
	if err != nil || !isHostname(lower) {
		return "", badAddress("its domain is not a valid name")
	}
	return lower, nil
}

// isHostname reports whether name is one of a host, and not an IPv4 address: the resolver would read it as a
// number.
func isHostname(name string) bool {
	if !IsName(name) {
		return false
	}
	if last := name[len(name)-1]; last < '0' || last > '9' { // every IPv4 address ends in a digit
		return true
	}
	_, err := netip.ParseAddr(name)
	return err != nil
}

// IsName reports whether name consists of labels with lower-case letters, digits and hyphens (RFC 1123
// section 2.1).
func IsName(name string) bool {
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
				return false
			}
		}
	}
	return true
}

// isAtext reports whether r is allowed in an atom (RFC 5322 section 3.2.3; RFC 6532 section 3.2 adds
// printable UTF-8).
func isAtext(r rune) bool {
	switch {
	case r >= utf8.RuneSelf:
		return unicode.IsPrint(r) && r != utf8.RuneError
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
}

func badCharacter(r rune) string {
	switch {
	case r == '<' || r == '>':
		return "it contains < or >; a display name goes into name"
	case unicode.IsSpace(r):
		return "it contains a space or a line break"
	case unicode.IsPrint(r):
		return "it contains " + string(r)
	}
	return "it contains a control character"
}

func badAddress(why string) error { return errors.New("is not a valid email address: " + why) }

func isASCII[T string | []byte](s T) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
