package links

import (
	"strings"

	"golang.org/x/net/html"
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
		if start, end, quoted := hrefIn(raw); start < end {
			p.links = append(p.links, link{start: at + start, end: at + end, quoted: quoted, value: value})
		}
	}
}

const (
	blanks     = " \t\r\n\f"
	endsOfName = blanks + "/>"
)

// hrefIn returns the position of the value of the first href in a start tag that ends with >. It parses
// attributes as the tokenizer does (WHATWG HTML, 13.2.5.32 to 13.2.5.38), which returns their values but not
// their positions.
func hrefIn(tag string) (start, end int, quoted bool) {
	i := strings.IndexAny(tag, endsOfName)
	for i >= 0 && i < len(tag) {
		i = pastBlanks(tag, i)
		if i >= len(tag) || tag[i] == '>' {
			break
		}
		from := i
		if tag[i] == '=' { // at the first place, it is part of the name
			i++
		}
		for i < len(tag) && tag[i] != '=' && strings.IndexByte(endsOfName, tag[i]) < 0 {
			i++
		}
		name := tag[from:i]
		i = pastBlanks(tag, i)
		if i < len(tag) && tag[i] == '/' {
			i++
		} else if i < len(tag) && tag[i] == '=' {
			start, end, i, quoted = valueIn(tag, pastBlanks(tag, i+1))
			if strings.EqualFold(name, "href") {
				return start, end, quoted
			}
			continue
		}
		if strings.EqualFold(name, "href") {
			break // without a value; browsers ignore a second href
		}
	}
	return 0, 0, false
}

// valueIn parses the attribute value that begins at i, and returns where to continue.
func valueIn(tag string, i int) (start, end, next int, quoted bool) {
	if i >= len(tag) || tag[i] == '>' {
		return i, i, i, false
	}
	if tag[i] == '"' || tag[i] == '\'' {
		n := strings.IndexByte(tag[i+1:], tag[i])
		if n < 0 {
			return len(tag), len(tag), len(tag), true
		}
		return i + 1, i + 1 + n, i + n + 2, true
	}
	n := strings.IndexAny(tag[i:], blanks+">")
	if n < 0 {
		n = len(tag) - i
	}
	return i, i + n, i + n, false
}

func pastBlanks(s string, i int) int {
	for i < len(s) && strings.IndexByte(blanks, s[i]) >= 0 {
		i++
	}
	return i
}
