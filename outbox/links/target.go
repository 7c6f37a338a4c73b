package links

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxURL bounds the links that are rewritten, in octets. Mail programs and servers do not reliably take
// longer ones, and the rewritten link is half as long again.
const maxURL = 2000

// base resolves relative links. The zero value resolves none.
type base struct{ url *url.URL }

// baseOf parses the href of a base element. If it is not a web address, relative links are not resolved.
func baseOf(href string) base {
	target, ok := base{}.target(href)
	if !ok {
		return base{}
	}
	u, err := url.Parse(target)
	if err != nil {
		return base{}
	}
	return base{u}
}

// target returns the web address of a link, absolute and in ASCII, with scheme and host in lower case. It
// returns false for a link that must not be rewritten.
func (b base) target(href string) (string, bool) {
	href = strings.Trim(href, " \t\r\n\f")
	if href == "" || href[0] == '#' || len(href) > maxURL || odd(href) || unfinished(href) {
		return "", false
	}
	if !absolute(href) {
		if b.url == nil || hasScheme(href) {
			return "", false
		}
		ref, err := url.Parse(encoded(href))
		if err != nil {
			return "", false
		}
		href = b.url.ResolveReference(ref).String()
	}
	return web(href)
}

// web checks an absolute link of http or https.
func web(link string) (string, bool) {
	scheme, rest, _ := strings.Cut(link, "://")
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	host, ok := asciiHost(host)
	if !ok {
		return "", false
	}
	target := strings.ToLower(scheme) + "://" + host + encoded(path)
	u, err := url.Parse(target)
	if err != nil || u.User != nil || u.Hostname() == "" || len(target) > maxURL {
		return "", false
	}
	return target, true
}

// asciiHost returns a host, with its port, in its DNS form. A user name before it is refused: it makes one
// host look like another.
func asciiHost(host string) (string, bool) {
	host = strings.ToLower(host)
	if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-._:[]") == "" {
		return host, true
	}
	if !strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return "", false
	}
	name, port, hasPort := strings.Cut(host, ":")
	name, err := idna.Lookup.ToASCII(name)
	if err != nil || strings.Trim(port, "0123456789") != "" {
		return "", false
	}
	if hasPort {
		name += ":" + port
	}
	return name, true
}

// absolute reports whether a link is one of http or https with a host.
func absolute(link string) bool {
	scheme, rest, ok := strings.Cut(link, "://")
	return ok && rest != "" && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http"))
}

// hasScheme reports whether a link begins with a scheme (RFC 3986, 3.1), so that it is not resolved with a
// base.
func hasScheme(link string) bool {
	for i := range len(link) {
		switch c := link[i]; {
		case c == ':':
			return true
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '-', c == '.':
		default:
			return false
		}
	}
	return false
}

// odd reports whether a link has characters that browsers and servers read differently. These are control
// characters, which may end a header, backslashes, which browsers read as slashes, and octets that aren't
// UTF-8.
func odd(link string) bool {
	return !utf8.ValidString(link) || strings.ContainsFunc(link, func(r rune) bool {
		return r < ' ' || r == '\\' || 0x7f <= r && r < 0xa0 || r == 0x2028 || r == 0x2029
	})
}

// marks are placeholders of template languages, which another program replaces later. An editor may have
// encoded the Handlebars ones.
var marks = []string{"{{", "}}", "{%", "%}", "<%", "%>", "${", "%%", "*|", "|*", "[[", "%7B%7B", "%7b%7b"}

func unfinished(link string) bool {
	return strings.ContainsAny(link, "{}%|[") &&
		slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(link, m) })
}

// encoded encodes invalid URL characters as browsers do: as percent-encoded octets of UTF-8.
func encoded(s string) string {
	const hex = "0123456789ABCDEF"
	var b []byte
	for i := range len(s) {
		c := s[i]
		forbidden := c >= 0x80 || c == ' ' || c == '"' || c == '<' || c == '>' || c == '`'
		switch {
		case forbidden && b == nil:
			b = append(make([]byte, 0, len(s)+32), s[:i]...)
			b = append(b, '%', hex[c>>4], hex[c&15])
		case forbidden:
			b = append(b, '%', hex[c>>4], hex[c&15])
		case b != nil:
			b = append(b, c)
		}
	}
	if b == nil {
		return s
	}
	return string(b)
}

// lowerHost returns a URL, or its prefix, with scheme and host in lower case.
func lowerHost(link string) string {
	i := strings.Index(link, "://")
	if i < 0 {
		return link
	}
	end := len(link)
	if n := strings.IndexAny(link[i+3:], "/?#"); n >= 0 {
		end = i + 3 + n
	}
	return strings.ToLower(link[:end]) + link[end:]
}
