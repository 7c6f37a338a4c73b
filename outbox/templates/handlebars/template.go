package handlebars

import "sync"

// Options are the parse options of a template. The zero value parses Handlebars for html.
type Options struct {
	// Partials are the sources that {{> name}} may include, by name. Only those that the template can reach are
	// read.
	Partials map[string]string
	// Layout is the name of a partial that gets the whole template as its block, as between {{#> name}} and
	// {{/name}}. The layout prints it with {{> @partial-block}}. Empty: none.
	Layout string
	// Escaping is the escaping of printed values; default html.
	Escaping Escaping
	// EscapedOnly refuses tags that print unescaped values: {{{name}}} and {{& name}}.
	EscapedOnly bool
	// Mustache enables three rules of the Mustache specification that Handlebars lacks: missing names are
	// looked up in outer contexts, templates may change their delimiters, and a missing partial prints
	// nothing.
	Mustache bool
	// Limits apply to parsing and to each execution.
	Limits Limits
}

// Template is a parsed template with its partials. It is immutable and safe for concurrent use.
type Template struct {
	options  Options
	limits   Limits
	main     *source
	partials map[string]*source
	buffers  sync.Pool // of *[]byte, for output
}

// Parse parses a template. A fault of it or of an included partial is an *Error with its position: a syntax
// error, a missing helper or partial, a partial that always includes itself, or an exceeded limit.
func Parse(text string, o Options) (*Template, error) {
	t := &Template{options: o, limits: o.Limits.withDefaults(), partials: map[string]*source{}}
	l := loader{template: t, inlines: map[string]bool{}, queued: map[string]bool{}}
	err := catch(func() {
		t.main = l.read("", text)
		l.layOut(t.main)
		l.readPartials()
		l.findCycle()
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}
