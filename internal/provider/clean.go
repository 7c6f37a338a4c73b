package provider

import (
	"net/mail"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/message"
)

const maxID = 512 // bytes of an id

// clean returns a text that is safe to store and show: valid UTF-8, no control characters but line feeds and
// tabs, trimmed, at most limit bytes.
func clean(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit]
	}
	s = strings.Map(func(c rune) rune {
		if (c < ' ' && c != '\n' && c != '\t') || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return message.Clip(strings.TrimSpace(s), limit)
}

// address returns the address in a provider's text, which may be "Ann <ann@example.com>". The domain becomes
// lower case; the local part stays (RFC 5321, section 2.4). An invalid address is returned as written.
func address(s string) string {
	s = clean(s, 1000)
	if strings.ContainsAny(s, "<\"(") {
		if a, err := mail.ParseAddress(s); err == nil {
			s = a.Address
		}
	}
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return clean(s, 320)
	}
	return clean(s[:at+1]+strings.TrimSuffix(strings.ToLower(s[at+1:]), "."), 320)
}

// addresses splits a list of addresses, as in the header To. An unreadable list counts as one address.
func addresses(s string) []string {
	if len(s) > 32<<10 {
		return nil
	}
	list, err := mail.ParseAddressList(s)
	if err != nil {
		if strings.TrimSpace(s) == "" {
			return nil
		}
		return []string{s}
	}
	var found []string
	for _, a := range list {
		found = append(found, a.Address)
	}
	return found
}

// messageID returns a Message-ID in angle brackets, or "" if it has blanks.
func messageID(s string) string {
	s = strings.TrimSpace(s)
	s = strings.TrimSuffix(strings.TrimPrefix(s, "<"), ">")
	if s == "" || len(s) > 990 || !utf8.ValidString(s) ||
		strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '<' || c == '>' }) {
		return ""
	}
	return "<" + s + ">"
}

// ipAddress returns an IP address in its usual form, or "" for other text.
func ipAddress(s string) string {
	ip, err := netip.ParseAddr(strings.TrimSpace(s))
	if err != nil || ip.Zone() != "" {
		return ""
	}
	return ip.Unmap().String()
}

// when reads a time: RFC 3339, or seconds or milliseconds since 1970. A time before 2000 or after 2100 has a
// wrong unit or clock and counts as none.
func when(v any) time.Time {
	s := strings.TrimSpace(asText(v))
	if s == "" || len(s) > 64 {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f > 0 && f < 1e14) {
			return time.Time{}
		}
		if f > 1e11 {
			at = time.UnixMilli(int64(f))
		} else {
			at = time.UnixMicro(int64(f * 1e6))
		}
	}
	at = at.UTC().Truncate(time.Millisecond)
	if at.Year() < 2000 || at.Year() >= 2100 {
		return time.Time{}
	}
	return at
}

func firstTime(values ...any) time.Time {
	for _, v := range values {
		if at := when(v); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}
