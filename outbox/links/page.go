package links

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/message"
)

// Page is html whose links were found, as offsets, so that everything else stays as it is.
type Page struct {
	source  string
	links   []link
	href    string // from the first base element that has one
	base    base   // what href means
	bodyEnd int    // where the last </body> begins; without one, the length of the html
}

// link is the value of the href of an a or area element.
type link struct {
	start, end int    // the value's position, without its quotes
	quoted     bool   // it stands in quotes
	value      string // as browsers read it, with entities replaced
	target     string // the web address that it leads to
	web        bool   // it leads to one that may be counted
	led        bool   // where it leads is known
}

// Scan finds the links of html and the end of its body.
func Scan(source string) Page {
	p := Page{source: source, bodyEnd: len(source)}
	z := html.NewTokenizer(strings.NewReader(source))
	for at := 0; ; {
		kind := z.Next()
		if kind == html.ErrorToken { // the end; an unclosed tag stays as it is
			break
		}
		raw := source[at : at+len(z.Raw())]
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			p.open(z, raw, at)
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == "body" {
				p.bodyEnd = at
			}
		}
		at += len(raw)
	}
	p.base = baseOf(p.href)
	for i := range p.links {
		l := &p.links[i]
		l.target, l.web = p.base.target(l.value)
		l.led = true
	}
	return p
}

// Addresses returns the addresses of the page's links, in their order.
func (p Page) Addresses() []string {
	all := make([]string, len(p.links))
	for i, l := range p.links {
		all[i] = l.value
	}
	return all
}

// Filled returns the page of html that differs from p's in values only, none of which is the base of its
// links. An offset of p's html becomes at(offset), and the address of its i-th link address(i).
func (p Page) Filled(source string, at func(offset int) int, address func(i int) string) Page {
	p.source, p.bodyEnd, p.links = source, at(p.bodyEnd), slices.Clone(p.links)
	for i := range p.links {
		l := &p.links[i]
		l.start, l.end = at(l.start), at(l.end)
		if value := address(i); value != l.value {
			l.value, l.led = value, false
		}
	}
	return p
}

// open handles a start tag.
func (p *Page) open(z *html.Tokenizer, raw string, at int) {
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
	case isBase && p.href == "":
		p.href = value
	case !isBase:
		if a, _ := message.FindAttribute(raw, "href"); a.ValueStart < a.ValueEnd {
			p.links = append(p.links, link{start: at + a.ValueStart, end: at + a.ValueEnd, quoted: a.Quoted,
				value: value})
		}
	}
}
