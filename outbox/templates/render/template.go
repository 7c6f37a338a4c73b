package render

import (
	"cmp"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/templates/handlebars"
	"github.com/postroom/postroom/outbox/templates/inlinecss"
)

// Format is the format of a template's html part.
type Format string

// The formats.
const (
	FormatHTML     Format = "html"     // the default
	FormatMarkdown Format = "markdown" // CommonMark with tables, strikethrough and html
)

// Source is a template as it is stored. At least one part is given.
type Source struct {
	Format      Format // HTML's; defaults to html
	Subject     string // a single line for any data
	PreviewText string // mail lists show it beside the subject
	HTML        string // html or Markdown
	Text        string // defaults to one made from the html
}

// Options are the options of parsing and rendering. The zero value works.
type Options struct {
	// html, or Markdown for a template in Markdown; Text, Subject and PreviewText may use them too
	Partials map[string]string
	// what Text, Subject and PreviewText use instead of the partials of the same name
	TextPartials map[string]string
	// html around the html part, in which {{> @partial-block}} stands for it; optional
	Layout      string
	InlineCSS   bool              // write style sheets into style attributes
	EscapedOnly bool              // refuse {{{ }}}
	Mustache    bool              // read templates as Mustache does (handlebars.Options)
	Limits      handlebars.Limits // for each part
	CSS         inlinecss.Options
	Time        time.Duration // for one rendering on a busy machine; defaults to 10 s
}

// Template is a parsed template. It is safe for concurrent use.
type Template struct {
	options Options
	format  Format
	subject *handlebars.Template // nil if not given, like the others
	preview *handlebars.Template
	html    *handlebars.Template
	layout  *handlebars.Template // for Markdown: what the finished html goes into
	text    *handlebars.Template
	shapes  shapes
	pages   pages // of Markdown

	composer message.Composer
}

// layoutName is the layout's name among the partials. Templates cannot write it, and errors do not show it.
const layoutName = "\x00layout"

// clientText returns the text of a template error for the client.
func clientText(err error) string {
	return strings.ReplaceAll(err.Error(), "partial "+layoutName, "layout")
}

// markdownBody is the content of a layout for Markdown: the converted html.
const markdownBody = "{{{@body}}}"

// Parse parses a template. It returns all errors together: fault.Unprocessable, code TemplateFault, with the
// fields "subject", "previewText", "html" and "text", or "format".
func Parse(s Source, o Options) (*Template, error) {
	o.Time = cmp.Or(max(o.Time, 0), 10*time.Second) // generous: steps, output and matches bound the work
	t := &Template{options: o, format: s.Format}
	var faults fault.Fields
	switch s.Format {
	case "":
		t.format = FormatHTML
	case FormatHTML, FormatMarkdown:
	default:
		faults.Add("format", `must be "html" or "markdown"`)
	}
	read := func(key, source string, escaping handlebars.Escaping, layout bool) *handlebars.Template {
		if source == "" {
			return nil
		}
		language := o.language(escaping, layout)
		var err error
		if source == markdownBody { // our own; the options apply only to the layout around it
			_, err = handlebars.Parse("", language)
			language.EscapedOnly = false
		}
		var part *handlebars.Template
		if err == nil {
			part, err = handlebars.Parse(source, language)
		}
		if err != nil {
			faults.Add(key, "%s", clientText(err))
		}
		return part
	}
	t.subject = read("subject", s.Subject, handlebars.Header, false)
	t.preview = read("previewText", s.PreviewText, handlebars.Header, false)
	t.text = read("text", s.Text, handlebars.Text, false)
	if t.format == FormatMarkdown {
		t.html = read("html", s.HTML, handlebars.Markdown, false)
		if s.HTML != "" && o.Layout != "" {
			t.layout = read("html", markdownBody, handlebars.HTML, true)
		}
	} else {
		t.html = read("html", s.HTML, handlebars.HTML, o.Layout != "")
	}
	if len(faults) > 0 {
		return nil, Faults(faults)
	}
	return t, nil
}

// Faults returns the error for a template with these invalid fields.
func Faults(fields fault.Fields) error {
	return &fault.Error{Kind: fault.Unprocessable, Code: "TemplateFault", Message: "The template has errors",
		Fields: fields}
}

// language returns the options for reading one part.
func (o Options) language(escaping handlebars.Escaping, layout bool) handlebars.Options {
	h := handlebars.Options{
		Partials: o.Partials, Escaping: escaping, EscapedOnly: o.EscapedOnly, Mustache: o.Mustache,
		Limits: o.Limits,
	}
	if inText := escaping == handlebars.Text || escaping == handlebars.Header; inText &&
		len(o.TextPartials) > 0 {
		h.Partials = joined(o.Partials, o.TextPartials)
	}
	if layout {
		h.Partials = joined(o.Partials, map[string]string{layoutName: o.Layout})
		h.Layout = layoutName
	}
	return h
}

// joined returns the union of two maps; the second one's values take precedence.
func joined(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// Variables lists the variables of the template, each name once (handlebars.Template.Variables).
func (t *Template) Variables() []handlebars.Variable {
	var all []handlebars.Variable
	seen := map[string]bool{}
	for _, part := range []*handlebars.Template{t.subject, t.preview, t.html, t.layout, t.text} {
		if part == nil {
			continue
		}
		for _, v := range part.Variables() {
			if !seen[v.Name] {
				seen[v.Name] = true
				all = append(all, v)
			}
		}
	}
	return all
}

// faultOf returns the client's error for a part's error.
func (t *Template) faultOf(key string, err error) error {
	if _, ok := errors.AsType[*handlebars.Error](err); !ok && !errors.Is(err, inlinecss.ErrLimit) {
		return err
	}
	return &fault.Error{
		Kind: fault.Unprocessable, Code: "TemplateFault", Message: "The template can't be rendered with this data",
		Fields: []fault.Field{{Key: key, Message: clientText(err)}}, Err: err,
	}
}
