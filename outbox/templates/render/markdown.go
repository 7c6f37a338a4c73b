package render

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
	xhtml "golang.org/x/net/html"

	"github.com/postroom/postroom/outbox/templates/handlebars"
)

// Limits of Markdown. The parser reads each nested line and each unclosed bracket again for all earlier ones.
// Within these limits that takes milliseconds; without, minutes.
const (
	maxMarkdown         = 64 << 10 // bytes, because parsing cannot be interrupted
	maxMarkdownNesting  = 32
	maxMarkdownBrackets = 2000
	maxMarkdownColumns  = 64 // in a table, whose rows are all filled up to as many
)

// tooLarge refuses Markdown that would take too long to parse.
func tooLarge(source string) error {
	if len(source) > maxMarkdown {
		return limitError("the Markdown is longer than %d bytes", maxMarkdown)
	}
	for line := range strings.Lines(source) {
		if strings.Count(line, "|") > maxMarkdownColumns {
			return limitError("a table of the Markdown has more than %d columns", maxMarkdownColumns)
		}
		depth := 0
		for _, c := range line {
			if c == '>' || c == '-' || c == '*' || c == '+' {
				depth++
			} else if c != ' ' && c != '\t' && c != '.' && c != ')' && (c < '0' || c > '9') {
				break
			}
		}
		if depth > maxMarkdownNesting && strings.Trim(line, "-*_ \t\r\n") != "" {
			return limitError("the Markdown is nested more than %d deep", maxMarkdownNesting)
		}
	}
	for _, c := range "[<`*_~" {
		if strings.Count(source, string(c)) > maxMarkdownBrackets {
			return limitError("the Markdown has more than %d of %c", maxMarkdownBrackets, c)
		}
	}
	return nil
}

func limitError(format string, args ...any) error {
	return &handlebars.Error{Message: fmt.Sprintf(format, args...), Err: handlebars.ErrLimit}
}

// reader parses Markdown. Its html is the author's own: marks stand for the values.
var reader = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
	goldmark.WithRendererOptions(html.WithUnsafe(), html.WithWriter(wordWriter{html.DefaultWriter})),
)

// wordWriter changes the marks in the text of Markdown, as opposed to those in html and code.
type wordWriter struct{ html.Writer }

const wordMark = handlebars.Mark + "W"

// Write writes text.
func (w wordWriter) Write(to util.BufWriter, source []byte) {
	w.Writer.Write(to, bytes.ReplaceAll(source, []byte(handlebars.Mark), []byte(wordMark)))
}

// anyMark matches a mark. If it has a W, it marks a word.
var anyMark = regexp.MustCompile(handlebars.Mark + "(W?)([0-9]+)Z")

// pages are converted Markdown texts, by their source. A campaign's pages differ in what is printed or not:
// marks stand for the values.
type pages struct {
	mu   sync.RWMutex
	kept map[string]string
}

func (p *pages) converted(source string) (string, error) {
	p.mu.RLock()
	page, known := p.kept[source]
	p.mu.RUnlock()
	if known {
		return page, nil
	}
	if err := tooLarge(source); err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := reader.Convert([]byte(source), &out); err != nil {
		return "", fmt.Errorf("read Markdown: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[string]string{}
	}
	if len(p.kept) < maxShapes && out.Len() <= maxShaped {
		p.kept[source] = out.String()
	}
	return out.String(), nil
}

// withValues puts values in the places of their marks, escaped for these places: no value ends the text, tag
// or code it stands in.
func withValues(page string, values []handlebars.Value) handlebars.Result {
	var out strings.Builder
	var placed []handlebars.Value
	z := xhtml.NewTokenizer(strings.NewReader(page))
	for at := 0; at < len(page); {
		kind := z.Next()
		raw := page[at : at+len(z.Raw())]
		if kind == xhtml.ErrorToken { // a tag that the page does not end
			raw = page[at:]
		}
		at += len(raw)
		isTag := kind == xhtml.StartTagToken || kind == xhtml.SelfClosingTagToken || kind == xhtml.ErrorToken
		done := 0
		for _, m := range anyMark.FindAllStringSubmatchIndex(raw, -1) {
			i, err := strconv.Atoi(raw[m[4]:m[5]])
			out.WriteString(raw[done:m[0]])
			if done = m[1]; err != nil || i >= len(values) { // the author's own text
				out.WriteString(handlebars.Mark + raw[m[4]:m[1]])
				continue
			}
			value := values[i].Text
			switch {
			case isTag && !isQuoted(raw[:m[0]]):
				value = unquoted.Replace(value)
			case !isTag && m[2] < m[3]:
				value = words(value)
			default:
				value = xhtml.EscapeString(value)
			}
			if c := value[0]; c != '&' && c < utf8.RuneSelf && strings.HasSuffix(out.String(), "<") {
				value = fmt.Sprintf("&#%d;%s", c, value[1:]) // it must not begin a tag
			}
			start := out.Len()
			out.WriteString(value)
			placed = append(placed, handlebars.Value{Text: values[i].Text, Start: start, End: out.Len()})
		}
		out.WriteString(raw[done:])
	}
	return handlebars.Result{Text: out.String(), Values: placed}
}

// words writes a value into a paragraph: its lines stay lines.
func words(value string) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, string(util.EscapeHTML([]byte(line))))
		}
	}
	return strings.Join(lines, "<br />\n")
}

const blanks = " \t\n\f\r"

// isQuoted reports whether a start tag that begins so is inside of quotes.
func isQuoted(tag string) bool {
	quote := byte(0)
	for i := range len(tag) {
		switch c := tag[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\'') && strings.HasSuffix(strings.TrimRight(tag[:i], blanks), "="):
			quote = c
		}
	}
	return quote != 0
}

// unquoted escapes a value for a tag outside of quotes.
var unquoted = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;",
	"=", "&#x3D;", "`", "&#96;", " ", "&#32;", "\t", "&#9;", "\n", "&#10;", "\f", "&#12;", "\r", "&#13;")
