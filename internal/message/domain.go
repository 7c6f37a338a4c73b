package message

import (
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// ASCIIDomain returns an address or a domain with the domain in ASCII, in which Postroom stores addresses
// (RFC 5890, 2.3.2.1). Text without such a form stays as it is.
func ASCIIDomain(address string) string {
	at := strings.LastIndexByte(address, '@') + 1
	if isASCII(address[at:]) {
		return address
	}
	if ascii, err := idna.Lookup.ToASCII(address[at:]); err == nil {
		return address[:at] + ascii
	}
	return address
}

// UnicodeDomain returns an address or a domain with the domain in the letters that people write.
func UnicodeDomain(address string) string {
	at := strings.LastIndexByte(address, '@') + 1
	if unicode, err := idna.ToUnicode(address[at:]); err == nil {
		return address[:at] + unicode
	}
	return address
}

// AddressHas reports whether a text is part of an address, in either form of its domain. Case and the way in
// which letters are composed don't matter.
func AddressHas(address, part string) bool {
	address, part = folded(address), folded(part)
	return strings.Contains(address, part) ||
		strings.Contains(address, "xn--") && strings.Contains(folded(UnicodeDomain(address)), part)
}

func folded(s string) string {
	if s = strings.ToLower(s); isASCII(s) {
		return s
	}
	return norm.NFKC.String(s)
}
