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

// TextLink is a link as TextFromHTML finds it.
type TextLink struct {
	Href  string
	Shown string // text of the link

	pictured bool // an image is in the link
}

// Written reports whether the address of a link is written after its text: it is a web address that the text
// does not contain.
func (l TextLink) Written() bool {
	isWeb := strings.HasPrefix(l.Href, "https://") || strings.HasPrefix(l.Href, "http://")
	before, ends := strings.CutSuffix(l.Href, l.Shown)
	return isWeb && !strings.Contains(l.Shown, l.Href) &&
		!(l.Shown != "" && ends && strings.HasSuffix(before, "://"))
}

// ShowsLink reports whether a reader of HTML sees an address that begins with one of some prefixes: as text,
// or as the target of a link that isn't hidden and has visible text or an image. Tracking pixels don't count.
func ShowsLink(source string, prefixes ...string) bool {
	t := textWriter{collects: true, bare: true}
	text := t.read(source)
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return strings.Contains(text, prefix) || slices.ContainsFunc(t.links, func(l TextLink) bool {
			href := strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(l.Href)
			return strings.HasPrefix(strings.TrimSpace(href), prefix) &&
				(l.pictured || strings.ContainsFunc(l.Shown, isVisible))
		})
	})
}

// Steady reports whether TextFromHTML writes a value as it is, wherever it stands escaped in the text of an
// element or in an attribute: it is not empty, and nothing in it is dropped, collapsed or trimmed.
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

// read returns the text of html.
func (t *textWriter) read(source string) string {
	z := xhtml.NewTokenizer(strings.NewReader(source[:min(len(source), maxHTMLRead)]))
	for t.out.Len() < maxTextWritten {
		switch z.Next() {
		case xhtml.ErrorToken:
			return t.text()
		case xhtml.TextToken:
			if t.skipping == "" {
				t.write(string(z.Text()))
			}
		case xhtml.StartTagToken:
			t.open(z.Token())
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
	depth    int    // of elements of that name inside it
	link     link   // the open link; without href there is none
	collects bool   // links are collected
	links    []TextLink
	bare     bool // addresses of links aren't written
}

type link struct {
	href     string
	start    int  // where its text starts in out
	pictured bool // an image is in it
}

func (t *textWriter) open(token xhtml.Token) {
	if t.skipping != "" {
		if token.Data == t.skipping && !isVoid(token.Data) {
			t.depth++
		} else if token.Data == "body" && t.skipping == "head" {
			t.skipping = ""
		}
		return
	}
	switch token.Data {
	case "head", "script", "style", "template", "title", "object", "svg", "select":
		t.skipping = token.Data
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
		if t.bare && t.link.href != "" { // links do not nest
			t.endLink()
		}
		t.link = link{href: attribute(token, "href"), start: t.out.Len()}
		if token.Data == "area" {
			t.image(token)
			t.endLink()
		}
	case "li":
		t.line(1)
		t.write("- ")
	case "td", "th":
		t.space = true
	case "pre":
		t.line(2)
		t.pre++
	default:
		t.line(blockMargin(token.Data))
	}
	if t.skipping == "" && !isVoid(token.Data) && isHidden(token) {
		t.skipping = token.Data
	}
}

func (t *textWriter) close(name string) {
	if t.skipping != "" {
		switch {
		case name != t.skipping:
		case t.depth > 0:
			t.depth--
		default:
			t.skipping = ""
		}
		return
	}
	switch name {
	case "a":
		t.endLink()
	case "pre":
		t.line(2)
		t.pre = max(0, t.pre-1)
	case "li":
		t.line(1)
	default:
		t.line(blockMargin(name))
	}
}

// image writes the description of an image.
func (t *textWriter) image(token xhtml.Token) {
	if isHidden(token) {
		return
	}
	t.link.pictured = t.link.pictured || token.Data == "img" && attribute(token, "src") != "" && !isPixel(token)
	if alt := strings.TrimSpace(attribute(token, "alt")); alt != "" {
		t.write(alt)
	}
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

// endLink writes the address of a link, unless its text contains it already.
func (t *textWriter) endLink() {
	l := TextLink{t.link.href, strings.TrimSpace(t.out.String()[t.link.start:]), t.link.pictured}
	t.link = link{}
	if t.collects {
		t.links = append(t.links, l)
	}
	if t.bare || !l.Written() {
		return
	}
	t.space = true
	t.write("<" + l.Href + ">")
}

// line requests at least n line ends before the next word.
func (t *textWriter) line(n int) {
	if n > 0 {
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

// flush writes the line ends and the blank that are due. It writes none at the start.
func (t *textWriter) flush() {
	if t.out.Len() > 0 {
		if t.breaks > 0 {
			t.out.WriteString(strings.Repeat("\n", min(t.breaks, 3)))
		} else if t.space && !strings.HasSuffix(t.out.String(), "\n") {
			t.out.WriteByte(' ')
		}
	}
	t.breaks, t.space = 0, false
}

func (t *textWriter) text() string {
	if t.bare && t.link.href != "" {
		t.endLink()
	}
	text := strings.TrimSpace(strings.ToValidUTF8(t.out.String(), "\uFFFD"))
	if text == "" {
		return ""
	}
	return text + "\n"
}

// blockMargin returns the line ends around a block element, or 0 for an inline element.
func blockMargin(name string) int {
	switch name {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "table", "blockquote", "figure":
		return 2
	case "div", "tr", "section", "article", "header", "footer", "main", "nav", "aside", "center", "address",
		"form", "fieldset", "dt", "dd",
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

// isHidden recognises elements that newsletters hide, mostly preheaders.
func isHidden(token xhtml.Token) bool {
	style := strings.ToLower(strings.Join(strings.Fields(attribute(token, "style")), ""))
	return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")
}

func attribute(token xhtml.Token, name string) string {
	for _, a := range token.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// isVisible reports whether a character has ink. Hangul and Braille have blanks that aren't spaces.
func isVisible(r rune) bool {
	return unicode.IsPrint(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) && r != '\u2800' &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
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
