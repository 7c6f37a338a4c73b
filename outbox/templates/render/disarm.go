package render

import (
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/outbox/templates/handlebars"
)

// disarm removes script addresses from html: links to "javascript:" and "data:" become "#". Images may use
// data:. All other bytes stay.
func disarm(source string) string {
	var out strings.Builder
	var tag tag
	z := html.NewTokenizer(strings.NewReader(source))
	done, at := 0, 0
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		start := at
		at += len(z.Raw())
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		tag.read(z)
		if !tag.isDangerous() {
			continue
		}
		out.WriteString(source[done:start])
		out.WriteString(tag.disarmed(kind))
		done = at
	}
	if done == 0 {
		return source
	}
	out.WriteString(source[done:])
	return out.String()
}

// tag is a start tag in the buffer of a tokenizer. Most tags are harmless, so no strings are made of it.
type tag struct {
	name  []byte
	attrs []attr
}

type attr struct{ name, value []byte }

func (t *tag) read(z *html.Tokenizer) {
	name, more := z.TagName()
	t.name, t.attrs = name, t.attrs[:0]
	for more {
		var a attr
		a.name, a.value, more = z.TagAttr()
		t.attrs = append(t.attrs, a)
	}
}

func (t *tag) isDangerous() bool {
	for _, a := range t.attrs {
		if isDangerous(t.name, a) {
			return true
		}
	}
	return false
}

// disarmed returns the tag without its dangerous addresses.
func (t *tag) disarmed(kind html.TokenType) string {
	token := html.Token{Type: kind, Data: string(t.name)}
	for _, a := range t.attrs {
		value := string(a.value)
		if isDangerous(t.name, a) {
			value = "#"
		}
		token.Attr = append(token.Attr, html.Attribute{Key: string(a.name), Val: value})
	}
	return token.String()
}

func isDangerous(tag []byte, a attr) bool {
	switch string(a.name) {
	case "href", "action", "formaction", "cite", "longdesc", "data", "ping", "xlink:href":
		return runs(string(a.value), false)
	case "src", "background", "poster", "lowsrc", "dynsrc":
		return runs(string(a.value), string(tag) == "img" || string(a.name) == "background")
	case "srcset":
		return runs(string(a.value), true)
	case "content":
		_, address, isRefresh := strings.Cut(strings.ToLower(string(a.value)), "url=")
		return string(tag) == "meta" && isRefresh && runs(strings.Trim(address, "'\""), false)
	}
	return false
}

// runs reports whether an address runs a script, or may.
func runs(address string, imagesAllowed bool) bool {
	switch handlebars.Scheme(address) {
	case "javascript", "vbscript", "livescript":
		return true
	case "data":
		return !imagesAllowed || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(address)), "data:image/")
	}
	return false
}
