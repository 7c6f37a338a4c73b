package handlebars

import (
	"html"
	"net/url"
	"strings"
)

// unsafeAddress replaces an address that is not safe in mail.
const unsafeAddress = "#"

// Scheme returns the scheme of an address in lower case, or "". It skips characters that browsers ignore,
// such as the line break in "java\nscript:".
func Scheme(address string) string {
	clean := strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r == '\u00a0' || r == '\ufeff' || r == '\u200b' {
			return -1
		}
		return r
	}, address)
	end := strings.IndexAny(clean, ":/?#")
	if end < 0 || clean[end] != ':' {
		return ""
	}
	return strings.ToLower(clean[:end])
}

// SafeAddress reports whether an address from data is safe in a link. It is relative, or has the scheme http,
// https, mailto, tel, sms or cid.
func SafeAddress(address string) bool {
	switch Scheme(address) {
	case "", "http", "https", "mailto", "tel", "sms", "cid":
		return true
	}
	return false
}

// address returns a safe address, with the named arguments added to its query.
func address(in *invoked) (any, error) {
	text, err := in.text(0)
	if err != nil || text == "" {
		return text, err
	}
	if !SafeAddress(text) {
		return unsafeAddress, nil
	}
	if len(in.call.hash) == 0 {
		return text, nil
	}
	before, fragment, hasFragment := strings.Cut(text, "#")
	var b strings.Builder
	b.WriteString(before)
	separator := "?"
	if strings.Contains(before, "?") {
		separator = "&"
	}
	for i, p := range in.call.hash {
		if absent(in.hash[i]) {
			continue
		}
		b.WriteString(separator + url.QueryEscape(p.name) + "=" + url.QueryEscape(plainText(in.hash[i])))
		separator = "&"
	}
	if hasFragment {
		b.WriteString("#" + fragment)
	}
	return b.String(), nil
}

// urlEncode escapes a text for any part of an address, as encodeURIComponent does.
func urlEncode(in *invoked) (any, error) {
	text, err := in.text(0)
	if err != nil {
		return nil, err
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("-_.!~*'()", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String(), nil
}

// link returns a link in the format of the template's output.
func link(in *invoked) (any, error) {
	to, err := in.text(0)
	if err != nil {
		return nil, err
	}
	shown := to
	if len(in.args) == 2 {
		if shown, err = in.text(1); err != nil {
			return nil, err
		}
	}
	if !SafeAddress(to) {
		to = unsafeAddress
	}
	switch in.run.template.options.Escaping {
	case HTML:
		return in.htmlLink(to, shown), nil
	case Markdown:
		return markup("[" + string(appendMarkdown(nil, shown)) + "](<" + angled.Replace(to) + ">)"), nil
	}
	if shown == to {
		return to, nil
	}
	return shown + " (" + to + ")", nil
}

// angled escapes an address for the angle brackets of Markdown.
var angled = strings.NewReplacer("<", "%3C", ">", "%3E", "\\", "%5C", "\n", "", "\r", "")

func (in *invoked) htmlLink(to, shown string) markup {
	b := appendHTML([]byte(`<a href="`), to)
	b = append(b, '"')
	for i, p := range in.call.hash {
		b = append(b, " "+html.EscapeString(p.name)+`="`...)
		b = appendHTML(b, plainText(in.hash[i]))
		b = append(b, '"')
	}
	b = append(b, '>')
	b = appendHTML(b, shown)
	return markup(append(b, "</a>"...))
}
