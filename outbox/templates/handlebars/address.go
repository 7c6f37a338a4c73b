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
func address(in *invoked) any {
	text := in.text(0)
	if !SafeAddress(text) {
		return unsafeAddress
	}
	if text == "" || len(in.call.hash) == 0 {
		return text
	}
	fragment := strings.IndexByte(text, '#')
	if fragment < 0 {
		fragment = len(text)
	}
	result, separator := text[:fragment], "?"
	if strings.Contains(result, "?") {
		separator = "&"
	}
	for i, p := range in.call.hash {
		if !absent(in.hash[i]) {
			result += separator + url.QueryEscape(p.name) + "=" + url.QueryEscape(plainText(in.hash[i]))
			separator = "&"
		}
	}
	return result + text[fragment:]
}

// urlEncode escapes a text for any part of an address, as encodeURIComponent does.
func urlEncode(in *invoked) any { return componentEscapes.Replace(url.QueryEscape(in.text(0))) }

// componentEscapes turns a query's escapes into encodeURIComponent's.
var componentEscapes = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A",
	"*")

// link returns a link in the format of the template's output.
func link(in *invoked) any {
	to := in.text(0)
	shown := to
	if len(in.args) == 2 {
		shown = in.text(1)
	}
	if !SafeAddress(to) {
		to = unsafeAddress
	}
	switch in.run.template.options.Escaping {
	case HTML, Markdown: // Markdown reads html in its text, and nothing else in a block of html
		return in.htmlLink(to, shown)
	}
	if shown == to {
		return to
	}
	return shown + " (" + to + ")"
}

func (in *invoked) htmlLink(to, shown string) markup {
	w := &in.run.out
	b := w.escape([]byte(`<a href="`), to, false)
	b = append(b, '"')
	for i, p := range in.call.hash {
		b = append(b, " "+html.EscapeString(p.name)+`="`...)
		b = w.escape(b, plainText(in.hash[i]), false)
		b = append(b, '"')
	}
	b = append(b, '>')
	b = w.escape(b, shown, false)
	return markup(append(b, "</a>"...))
}
