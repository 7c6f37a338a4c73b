package gateways

import (
	"net/netip"
	"regexp"
	"strings"
)

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]*$`)

// addressLiteral reports whether s is an address as EHLO writes it (RFC 5321 section 4.1.3): [192.0.2.1] or
// [IPv6:2001:db8::1].
func addressLiteral(s string) bool {
	s, ok := strings.CutPrefix(s, "[")
	s, closed := strings.CutSuffix(s, "]")
	s, six := strings.CutPrefix(s, "IPv6:")
	addr, err := netip.ParseAddr(s)
	return ok && closed && err == nil && addr.Is6() == six && addr.Zone() == ""
}
