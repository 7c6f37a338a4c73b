package message

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	xhtml "golang.org/x/net/html"
)

// Limits of the text made from html. Longer text does not help readers of plain text, and a huge mail of tags
// must not occupy a core.
const (
	maxHTMLRead    = 4 << 20
	maxTextWritten = 1 << 20
)

// TextFromHTML returns a readable text of html. Paragraphs, list items and table rows have their own lines; a
// link is followed by its address in angle brackets; an image is its description. Scripts, styles and hidden
// elements are omitted. It reads each byte once and never fails; malformed html gives odd text. Line ends are
// LF.
func TextFromHTML(source string) string {
	t := textWriter{}
	return t.read(source)
}

// TextAndLinks is TextFromHTML, and the links whose addresses it wrote or left out.
func TextAndLinks(source string) (string, []TextLink) {
	t := textWriter{collects: true}
	return t.read(source), t.links
}

// Steady reports whether TextFromHTML writes a value as it is, wherever it stands escaped in an element's
// text or an attribute: it is not empty, and none of it is dropped, collapsed or trimmed.
func Steady(value string) bool {
	blank := true // before the first word
	for _, r := range value {
		switch {
		case r == ' ':
			if blank {
				return false
			}
			blank = true
			continue
		case r == utf8.RuneError, unicode.IsSpace(r), dropInvisible(r) < 0:
			return false
		}
		blank = false
	}
	return !blank
}

func (t *textWriter) read(source string) string {
	source = source[:min(len(source), maxHTMLRead)]
	t.items = itemsOf(source)
	z := xhtml.NewTokenizer(strings.NewReader(source))
	for t.out.Len() < maxTextWritten {
		switch z.Next() {
		case xhtml.ErrorToken:
			return t.text()
		case xhtml.TextToken:
			if t.skipping == "" {
				t.write(string(z.Text()))
			}
		case xhtml.StartTagToken:
			token := z.Token()
			if token.Data == "noscript" {
				z.NextIsNotRawText() // mail programs run no scripts, so they show it
			}
			t.open(token)
		case xhtml.SelfClosingTagToken:
			token := z.Token()
			t.open(token)
			if !isVoid(token.Data) { // browsers ignore the slash, but the author meant an empty element
				t.close(token.Data)
			}
		case xhtml.EndTagToken:
			name, _ := z.TagName()
			t.close(string(name))
		}
	}
	return t.text()
}

type textWriter struct {
	out      strings.Builder
	breaks   int    // line ends due before the next word
	space    bool   // a blank is due before the next word
	pre      int    // depth of pre
	skipping string // element whose content is omitted
	depth    int    // nested elements of that name
	link     link   // the open link; without href there is none
	collects bool   // links are collected
	links    []TextLink
	bare     bool // addresses of links aren't written

	lists  []list
	items  []int  // each ol's, in order; nil if they don't matter
	indent int    // for lines in the open items of lists
	marker string // of the item that begins with the next word: its marker
}

type link struct {
	href     string
	start    int  // where its text starts in out; negative means no text yet
	pictured bool // an image is in it
}

func (t *textWriter) open(token xhtml.Token) {
	if token.Data == "ol" && len(t.items) > 0 {
		defer func() { t.items = t.items[1:] }()
	}
	if t.skipping != "" && !t.resumes(token.Data) {
		if token.Data == t.skipping {
			t.depth++
		}
		return
	}
	if isHidden(token) {
		if !isVoid(token.Data) {
			t.skipping = token.Data
		}
		return
	}
	switch token.Data {
	case "br":
		t.breaks++
		t.space = false
	case "hr":
		t.line(2)
		t.write("---")
		t.line(2)
	case "img":
		t.image(token)
	case "a", "area":
		t.endLink() // links do not nest
		t.link = link{href: attribute(token, "href"), start: -1}
		if token.Data == "area" {
			t.image(token)
			t.endLink()
		}
	case "ul", "ol", "menu", "dir":
		t.openList(token)
	case "li":
		t.openItem(token)
	case "td", "th":
		t.space = true
	case "pre", "listing", "xmp":
		t.line(2)
		t.pre++
	default:
		t.line(blockMargin(token.Data))
	}
}

// resumes reports whether the tag of an element ends one that is skipped: a body ends a head without an end
// tag, and most elements a paragraph.
func (t *textWriter) resumes(name string) bool {
	if name == "body" && t.skipping == "head" || t.skipping == "p" && blockMargin(name) > 0 {
		t.skipping, t.depth = "", 0
	}
	return t.skipping == ""
}

func (t *textWriter) close(name string) {
	if name == t.skipping {
		if t.depth--; t.depth < 0 {
			t.skipping, t.depth = "", 0
		}
		return
	}
	if t.skipping != "" && !t.resumes(name) {
		return
	}
	switch name {
	case "a":
		t.endLink()
	case "ul", "ol", "menu", "dir":
		t.closeList()
	case "li":
		t.closeItem()
	case "pre", "listing", "xmp":
		t.line(2)
		t.pre = max(0, t.pre-1)
	default:
		t.line(blockMargin(name))
	}
}

func (t *textWriter) image(token xhtml.Token) {
	t.link.pictured = t.link.pictured || token.Data == "img" && attribute(token, "src") != "" && !isPixel(token)
	if alt := strings.TrimSpace(attribute(token, "alt")); alt != "" {
		t.write(alt)
	}
}

// endLink writes the address of a link, unless its text contains it already.
func (t *textWriter) endLink() {
	if t.link.href == "" {
		return
	}
	l := TextLink{Href: t.link.href, pictured: t.link.pictured}
	if t.link.start >= 0 {
		l.Shown = t.out.String()[t.link.start:]
	}
	t.link = link{}
	if t.collects {
		t.links = append(t.links, l)
	}
	target := l.Target()
	if t.bare || target == "" {
		return
	}
	blank := t.space
	t.space = true
	t.write("<" + target + ">")
	t.space = blank
}

// line requests at least n line ends before the next word.
func (t *textWriter) line(n int) {
	if n > 0 && t.marker == "" { // an item begins next to its marker
		t.breaks = max(t.breaks, n)
		t.space = false
	}
}

// write writes text with collapsed white space, as browsers do, except in pre.
func (t *textWriter) write(s string) {
	if t.pre > 0 {
		t.flush()
		t.out.WriteString(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s))
		return
	}
	for s != "" {
		word := strings.IndexFunc(s, isBlank)
		switch {
		case word == 0:
			t.space = t.breaks == 0
			s = strings.TrimLeftFunc(s, isBlank)
			continue
		case word < 0:
			word = len(s)
		}
		if visible := strings.Map(dropInvisible, s[:word]); visible != "" {
			t.flush()
			t.out.WriteString(visible)
		}
		s = s[word:]
	}
}

// flush writes the line ends or the blank that are due, and what the line begins with.
func (t *textWriter) flush() {
	begins := t.out.Len() == 0
	if !begins {
		if begins = t.breaks > 0; begins {
			t.out.WriteString(strings.Repeat("\n", min(t.breaks, 3)))
		} else if t.space && !strings.HasSuffix(t.out.String(), "\n") {
			t.out.WriteByte(' ')
		}
	}
	if begins || t.marker != "" {
		t.out.WriteString(strings.Repeat(" ", max(0, min(t.indent, maxIndent)-len(t.marker))) + t.marker)
	}
	t.breaks, t.space, t.marker = 0, false, ""
	if t.link.start < 0 {
		t.link.start = t.out.Len()
	}
}

func (t *textWriter) text() string {
	t.endLink()
	text := strings.TrimSpace(strings.ToValidUTF8(t.out.String(), "\uFFFD"))
	if text == "" {
		return ""
	}
	return text + "\n"
}

// blockMargin returns the line ends around a block element, or 0 for an inline element.
func blockMargin(name string) int {
	switch name {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "menu", "dir", "dl", "table", "blockquote",
		"figure", "pre", "listing", "xmp", "hr":
		return 2
	case "div", "tr", "section", "article", "header", "footer", "main", "nav", "aside", "center", "address",
		"form", "fieldset", "legend", "dt", "dd", "li", "details", "summary", "dialog", "hgroup", "search",
		"figcaption", "caption", "body", "html", "tbody", "thead", "tfoot":
		return 1
	}
	return 0
}

func isVoid(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
		"wbr":
		return true
	}
	return false
}

// isHidden recognises elements that browsers don't show, or that newsletters hide, mostly preheaders.
func isHidden(token xhtml.Token) bool {
	switch token.Data {
	case "head", "script", "style", "template", "title", "object", "svg", "select", "datalist", "iframe",
		"noembed", "noframes", "canvas":
		return true
	case "dialog":
		return !has(token, "open")
	}
	style := strings.ToLower(strings.Join(strings.Fields(attribute(token, "style")), ""))
	return has(token, "hidden") || strings.Contains(style, "display:none") ||
		strings.Contains(style, "visibility:hidden")
}

func has(token xhtml.Token, name string) bool {
	return slices.ContainsFunc(token.Attr, func(a xhtml.Attribute) bool { return a.Key == name })
}

func attribute(token xhtml.Token, name string) string {
	for _, a := range token.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// isBlank reports whether r collapses into one blank. No-break spaces do: mail uses them as padding.
func isBlank(r rune) bool {
	return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\f' || r == '\u00a0'
}

// dropInvisible removes the fillers of preheaders and soft hyphens.
func dropInvisible(r rune) rune {
	switch r {
	case '\u034f', '\u00ad', '\u200b', '\ufeff':
		return -1
	}
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}
