package links

import (
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/message"
)

// page is the relevant parts of the html, as offsets, so that everything else stays as it is.
type page struct {
	links   []link
	base    string // href of the first base element that has one
	bodyEnd int    // where the last </body> begins; without one, the length of the html
}

// link is the value of the href of an a or area element.
type link struct {
	start, end int    // of the value, without its quotes
	quoted     bool   // it stands in quotes
	value      string // as browsers read it, with entities replaced
}

// scan finds the end of the body, and the links if they are wanted.
func scan(source string, wanted bool) page {
	p := page{bodyEnd: len(source)}
	z := html.NewTokenizer(strings.NewReader(source))
	for at := 0; ; {
		kind := z.Next()
		if kind == html.ErrorToken { // the end; an unclosed tag stays as it is
			return p
		}
		raw := source[at : at+len(z.Raw())]
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			if wanted {
				p.open(z, raw, at)
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == "body" {
				p.bodyEnd = at
			}
		}
		at += len(raw)
	}
}

// open handles a start tag.
func (p *page) open(z *html.Tokenizer, raw string, at int) {
	name, more := z.TagName()
	isBase := string(name) == "base"
	if !isBase && string(name) != "a" && string(name) != "area" {
		return
	}
	var value string
	found := false
	for more {
		var key, val []byte
		key, val, more = z.TagAttr()
		switch string(key) {
		case "href":
			value, found = string(val), true
		case "data-track":
			if strings.EqualFold(strings.TrimSpace(string(val)), "off") {
				return
			}
		}
	}
	switch {
	case !found:
	case isBase && p.base == "":
		p.base = value
	case !isBase:
		if a, _ := message.FindAttribute(raw, "href"); a.ValueStart < a.ValueEnd {
			p.links = append(p.links, link{start: at + a.ValueStart, end: at + a.ValueEnd, quoted: a.Quoted,
				value: value})
		}
	}
}
