package render

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/links"
	"github.com/postroom/postroom/outbox/templates/handlebars"
	"github.com/postroom/postroom/outbox/templates/inlinecss"
)

// Input is the input of one rendering.
type Input struct {
	Data      any            // maps, slices and scalars, as decoded JSON
	Variables map[string]any // further @variables
	Locale    string         // for numbers and dates; defaults to English
	Zone      *time.Location // for dates; defaults to UTC
	// variables that are missing are an error, fault.Unprocessable with code TemplateVariablesMissing
	Strict bool
}

// Mail is the result of a rendering. Parts that the template lacks are empty, except the text, which is made
// from the html.
type Mail struct {
	Subject     string
	PreviewText string
	HTML        string
	Text        string
	Missing     []Missing // the missing variables, each once

	shape   *shape // of HTML; nil if it has none
	values  []handlebars.Value
	changed links.Options // how its links changed
}

// page returns the html with its links.
func (m Mail) page() links.Page {
	if m.shape == nil {
		return links.Scan(m.HTML)
	}
	return m.shape.page.Filled(m.HTML, func(offset int) int { return m.shape.moved(offset, m.values) },
		func(i int) string { return m.shape.addresses[i].of(m.values) })
}

// ShowsLink is message.ShowsLink of the html.
func (m Mail) ShowsLink(prefixes ...string) bool {
	if m.shape != nil {
		for _, l := range m.shape.links {
			if real := l.of(m.values); real.Leads(prefixes...) && m.changed.Leaves(real.Href) {
				return true
			}
		}
	}
	return message.ShowsLink(m.HTML, prefixes...)
}

// Missing is a variable that the data lacked.
type Missing struct {
	handlebars.Missing        // in the layout, Template is "layout"
	Part               string // part of its first use: subject, previewText, html or text
}

// Render renders the template. It returns errors that are the client's, or the context's error if the
// caller's context ended.
func (t *Template) Render(ctx context.Context, in Input) (Mail, error) {
	within, cancel := context.WithTimeout(ctx, t.options.Time)
	defer cancel()
	r := rendering{template: t, ctx: within, input: handlebars.Input{Locale: in.Locale, Zone: in.Zone,
		Variables: in.Variables}, data: in.Data}
	m := Mail{Subject: r.part("subject", t.subject), PreviewText: r.part("previewText", t.preview)}
	r.html(&m)
	if t.text != nil {
		m.Text = r.part("text", t.text)
	}
	if r.err != nil {
		if ctx.Err() != nil {
			return Mail{}, ctx.Err()
		}
		return Mail{}, r.err
	}
	m.Missing = r.missing
	if in.Strict && len(m.Missing) > 0 {
		return Mail{Missing: m.Missing}, &fault.Error{Kind: fault.Unprocessable, Code: "TemplateVariablesMissing",
			Message: "Variables of the template are missing", Fields: r.fields}
	}
	return m, nil
}

// rendering is a running rendering. After an error its steps do nothing.
type rendering struct {
	template *Template
	ctx      context.Context
	input    handlebars.Input
	data     any
	missing  []Missing
	fields   fault.Fields // missing variables
	err      error
}

func (r *rendering) part(key string, part *handlebars.Template) string {
	return r.execute(key, part).Text
}

func (r *rendering) execute(key string, part *handlebars.Template) handlebars.Result {
	if part == nil || r.err != nil {
		return handlebars.Result{}
	}
	result, err := part.Execute(r.ctx, r.data, r.input)
	if err != nil {
		r.err = r.template.faultOf(key, err)
		return handlebars.Result{}
	}
	for _, m := range result.Missing {
		r.miss(key, m)
	}
	return result
}

// miss records a missing variable once for all parts.
func (r *rendering) miss(key string, m handlebars.Missing) {
	if slices.ContainsFunc(r.missing, func(known Missing) bool { return known.Name == m.Name }) {
		return
	}
	if m.Template == layoutName {
		m.Template = "layout"
	}
	r.missing = append(r.missing, Missing{m, key})
	r.fields.Add(key, "%s is missing (line %d, column %d)",
		m.Name, m.Line, m.Column)
}

// html renders the html part: fills it, converts Markdown, removes dangerous links, inlines CSS. The text is
// made of it if the template has none.
func (r *rendering) html(m *Mail) {
	t := r.template
	executed, located := r.execute("html", t.html), true
	if t.format == FormatMarkdown {
		executed, located = r.markdown(executed)
	}
	if r.err != nil || executed.Text == "" || located && t.shapes.fill(executed, m) {
		return
	}
	if m.HTML, m.Text = r.finish(executed.Text); r.err == nil && located && t.shapes.wants(executed) {
		if one := newShape(r.ctx, executed, t); r.ctx.Err() == nil {
			t.shapes.keep(one)
		}
	}
}

// finish makes the final html of an executed one, and the text.
func (r *rendering) finish(page string) (html, text string) {
	t := r.template
	html, err := t.inlined(r.ctx, disarm(page))
	if err != nil {
		r.err = t.faultOf("html", err)
		if errors.Is(err, context.DeadlineExceeded) {
			r.err = t.faultOf("html", &handlebars.Error{Message: "inlining CSS takes too long", Err: err})
		}
	}
	if t.text == nil && html != "" && r.err == nil {
		text = message.TextFromHTML(html)
	}
	return html, text
}

// stoodIn finishes a page for a shape. It is not ok if a tag is rewritten, which may write values
// differently.
func (t *Template) stoodIn(ctx context.Context, page string) (html, text string, links []message.TextLink,
	ok bool) {
	if disarm(page) != page {
		return "", "", nil, false
	}
	html, err := t.inlined(ctx, page)
	if text, links = message.TextAndLinks(html); t.text != nil {
		text = ""
	}
	return html, text, links, err == nil
}

// inlined inlines the CSS of a page if that is wanted.
func (t *Template) inlined(ctx context.Context, page string) (string, error) {
	if !t.options.InlineCSS {
		return page, nil
	}
	return inlinecss.Inline(ctx, page, t.options.CSS)
}

// markdown converts Markdown to html and puts it into the layout. located: the values are at their places.
func (r *rendering) markdown(executed handlebars.Result) (page handlebars.Result, located bool) {
	source := executed.Text
	if r.err != nil || source == "" {
		return page, false
	}
	converted, err := r.template.pages.converted(source)
	if err != nil {
		r.err = r.template.faultOf("html", err)
		return page, false
	}
	body := withValues(converted, executed.Values)
	if r.template.layout == nil {
		return body, true
	}
	around := *r
	around.input.Variables = map[string]any{}
	maps.Copy(around.input.Variables, r.input.Variables)
	around.input.Variables["body"] = body.Text
	page = around.execute("html", r.template.layout)
	r.missing, r.fields, r.err = around.missing, around.fields, around.err
	return page, place(&page, body)
}

// place adds a body's values to the values of the layout around it. It returns false if the body isn't there
// unchanged.
func place(page *handlebars.Result, body handlebars.Result) bool {
	start := strings.Index(page.Text, body.Text)
	end := start + len(body.Text)
	before := slices.IndexFunc(page.Values, func(v handlebars.Value) bool { return v.End > start })
	if before < 0 {
		before = len(page.Values)
	}
	if start < 0 || before < len(page.Values) && page.Values[before].Start < end {
		return false
	}
	for i := range body.Values {
		body.Values[i].Start += start
		body.Values[i].End += start
	}
	page.Values = slices.Insert(page.Values, before, body.Values...)
	return true
}
