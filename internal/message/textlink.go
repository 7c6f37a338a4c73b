package message

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	xhtml "golang.org/x/net/html"
	"golang.org/x/net/idna"
)

// TextLink is a link as TextFromHTML finds it.
type TextLink struct {
	Href  string
	Shown string // text of the link

	pictured bool // an image is in the link
}

// Target returns the text that follows a link: its web address as RFC 3986 writes it, or the address or
// number of its mailto:, tel: or sms:. It is empty if the text shows it already, and for other links.
func (l TextLink) Target() string {
	href := address(l.Href)
	if strings.HasPrefix(href, "//") {
		href = "https:" + href
	}
	scheme, rest, _ := strings.Cut(href, ":")
	switch scheme = strings.ToLower(scheme); scheme {
	case "https", "http", "ftp", "ftps":
		query := len(rest)
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			query = i
		}
		return l.web(scheme, strings.TrimLeft(strings.ReplaceAll(rest[:query], `\`, "/")+rest[query:], "/"))
	case "mailto", "tel", "sms":
		return l.contact(scheme, rest)
	}
	return ""
}

func (l TextLink) web(scheme, rest string) string {
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if ascii, err := idna.Lookup.ToASCII(host); err == nil && !isASCII(host) {
		host = ascii
	}
	target := scheme + "://" + host + escaped(path)
	for _, form := range []string{target, scheme + "://" + rest} {
		if strings.Contains(l.Shown, form) || l.Shown != "" && host != "" &&
			strings.TrimSuffix(form, "/") == scheme+"://"+strings.TrimSuffix(l.Shown, "/") {
			return ""
		}
	}
	return target
}

// contact returns the address or number that a link of mailto:, tel: or sms: is about.
func (l TextLink) contact(scheme, rest string) string {
	to, _, _ := strings.Cut(rest, "?")
	if plain, err := url.PathUnescape(to); err == nil {
		to = strings.TrimSpace(strings.Map(dropInvisible, plain))
	}
	digits := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r != '+' && !unicode.IsDigit(r) {
				return -1
			}
			return r
		}, s)
	}
	if strings.Contains(strings.ToLower(l.Shown), strings.ToLower(to)) ||
		scheme != "mailto" && strings.Contains(digits(l.Shown), digits(to)) {
		return ""
	}
	return to
}

// address returns an address of html as browsers read it: without blanks and controls around it and without
// tabs and line ends (WHATWG URL, 4.4).
func address(href string) string {
	href = strings.TrimFunc(href, func(r rune) bool { return r <= ' ' })
	return lineless.Replace(href)
}

var lineless = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// escaped writes the characters that RFC 3986 has no place for as octets in percent signs.
func escaped(path string) string {
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r) }
	if !strings.ContainsFunc(path, odd) {
		return path
	}
	var b strings.Builder
	for _, c := range []byte(path) {
		if odd(rune(c)) {
			b.WriteString("%" + string(upperHex[c>>4]) + string(upperHex[c&15]))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// ShowsLink reports whether a reader of HTML sees an address that begins with one of some prefixes: as text,
// or as a link's target. The link must not be hidden, and needs visible text or an image. Tracking pixels
// don't count.
func ShowsLink(source string, prefixes ...string) bool {
	t := textWriter{collects: true, bare: true}
	text := t.read(source)
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.Contains(text, prefix) }) ||
		slices.ContainsFunc(t.links, func(l TextLink) bool { return l.Leads(prefixes...) })
}

// Leads reports whether a reader sees the link, and it leads to an address that begins with one of some
// prefixes.
func (l TextLink) Leads(prefixes ...string) bool {
	to := address(l.Href)
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(to, prefix) }) &&
		(l.pictured || strings.ContainsFunc(l.Shown, isVisible))
}

// isVisible reports whether a character has ink. Hangul and Braille have blanks that aren't spaces.
func isVisible(r rune) bool {
	return unicode.IsPrint(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) && r != '\u2800' &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// isPixel recognises images of at most one pixel, which count opens or keep space.
func isPixel(token xhtml.Token) bool {
	tiny := func(length string) bool { return length == "0" || length == "1" }
	style := strings.ToLower(strings.Join(strings.Fields(attribute(token, "style")), ""))
	for declaration := range strings.SplitSeq(style, ";") {
		name, length, _ := strings.Cut(declaration, ":")
		if (name == "width" || name == "height") && tiny(strings.TrimSuffix(length, "px")) {
			return true
		}
	}
	return tiny(attribute(token, "width")) || tiny(attribute(token, "height"))
}
