package inlinecss

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/message"
)

// page is the offsets in the html from which the result is assembled.
type page struct {
	tags   []span  // start tags
	sheets []sheet // contents of style elements
	marked string  // the html with each start tag numbered, to find the elements of the tree in the text
}

type span struct{ start, end int }

// sheet is a style element's content.
type sheet struct {
	span
	element span // the whole of it, with its tags
	embeds  bool // it stays as it is
	blocks  []*block
	kept    string
}

// marker is the attribute that holds the number of a start tag.
const marker = "data-inlinecss-n"

// scan finds the start tags and style elements of html.
func scan(source string) page {
	var p page
	var marked strings.Builder
	z := html.NewTokenizer(strings.NewReader(source))
	at, open, embeds := 0, -1, false // open is the tag of a style element whose content comes next
	for z.Next() != html.ErrorToken {
		raw := source[at : at+len(z.Raw())]
		token := z.Token()
		opened := open
		open = -1
		switch token.Type {
		case html.StartTagToken, html.SelfClosingTagToken:
			name := min(1+len(token.Data), len(raw))
			marked.WriteString(raw[:name] + " " + marker + "=" + strconv.Itoa(len(p.tags)) + " ")
			raw = raw[name:]
			p.tags = append(p.tags, span{at, at + name + len(raw)})
			if token.Type == html.StartTagToken && token.Data == "style" {
				open, embeds = at, !isSheet(token)
			}
			at += name
		case html.TextToken:
			if opened >= 0 {
				p.sheets = append(p.sheets, sheet{span: span{at, at + len(raw)}, element: span{opened, at + len(raw)},
					embeds: embeds})
			}
		case html.EndTagToken:
			if n := len(p.sheets); token.Data == "style" && n > 0 && p.sheets[n-1].end == at {
				p.sheets[n-1].element.end = at + len(raw)
			}
		}
		marked.WriteString(raw)
		at += len(raw)
	}
	marked.WriteString(source[at:])
	p.marked = marked.String()
	return p
}

// isSheet reports whether a style element is CSS for every screen.
func isSheet(token html.Token) bool {
	for _, a := range token.Attr {
		value := strings.ToLower(strings.TrimSpace(a.Val))
		switch {
		case a.Key == "media" && value != "" && value != "all" && value != "screen",
			a.Key == "type" && value != "" && value != "text/css",
			a.Key == "data-embed":
			return false
		}
	}
	return true
}

// write assembles the result.
func (p *page) write(source string, found map[int]*cascade) string {
	var b strings.Builder
	b.Grow(len(source) + len(source)/2)
	at, next := 0, 0
	for i := 0; i <= len(p.tags); i++ {
		limit := len(source)
		if i < len(p.tags) {
			limit = p.tags[i].start
		}
		for next < len(p.sheets) && p.sheets[next].start <= limit {
			s := p.sheets[next]
			next++
			if strings.TrimSpace(s.kept) != "" {
				b.WriteString(source[at:s.start])
				b.WriteString("\n" + s.kept)
				at = s.end
				continue
			}
			if at <= s.element.start {
				b.WriteString(source[at:s.element.start])
			}
			at = s.element.end
		}
		if i == len(p.tags) || p.isDropped(i) {
			continue
		}
		b.WriteString(source[at:p.tags[i].start])
		tag := source[p.tags[i].start:p.tags[i].end]
		if c := found[i]; c != nil {
			tag = withStyle(tag, c)
		}
		b.WriteString(tag)
		at = p.tags[i].end
	}
	b.WriteString(source[at:])
	return b.String()
}

// isDropped reports whether a tag opens a style element that is now empty.
func (p *page) isDropped(i int) bool {
	for _, s := range p.sheets {
		if s.element.start == p.tags[i].start {
			return strings.TrimSpace(s.kept) == ""
		}
	}
	return false
}

// withStyle returns a start tag whose style attribute is replaced by the declarations of a cascade.
func withStyle(tag string, c *cascade) string {
	style, found := message.FindAttribute(tag, "style")
	text := c.text(html.UnescapeString(tag[style.ValueStart:style.ValueEnd]))
	if text == "" {
		return tag
	}
	attribute := `style="` + strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;").Replace(text) + `"`
	if found {
		return tag[:style.Start] + attribute + tag[style.End:]
	}
	end := len(tag) - 1 // before > or />
	if end > 0 && tag[end-1] == '/' {
		end--
	}
	return strings.TrimRight(tag[:end], " \t\r\n\f") + " " + attribute + tag[end:]
}
