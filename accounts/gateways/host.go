package gateways

import (
	"net/netip"
	"regexp"
	"strings"
)

var (
	idPattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]*$`)
	labelPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
)

// validHost reports whether s is a host name (RFC 1123; with underscores, which are used) or an IP address.
func validHost(s string) bool {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Zone() == ""
	}
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !labelPattern.MatchString(label) {
			return false
		}
	}
	return true
}

// addressLiteral reports whether s is an address as EHLO writes it (RFC 5321 section 4.1.3): [192.0.2.1] or
// [IPv6:2001:db8::1].
func addressLiteral(s string) bool {
	s, ok := strings.CutPrefix(s, "[")
	s, closed := strings.CutSuffix(s, "]")
	s, six := strings.CutPrefix(s, "IPv6:")
	addr, err := netip.ParseAddr(s)
	return ok && closed && err == nil && addr.Is6() == six && addr.Zone() == ""
}
