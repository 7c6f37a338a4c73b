package handlebars

// Options say how a template is read. The zero value reads Handlebars for html.
type Options struct {
	// Partials are the sources that {{> name}} may include, by name. Only those that the template can reach are read.
	Partials map[string]string
	// Layout is the name of a partial that the whole template is handed to, as if it stood between {{#> name}} and {{/name}}: the layout
	// prints it with {{> @partial-block}}. Empty: none.
	Layout string
	// Escaping is what happens to the values that are printed; html by default.
	Escaping Escaping
	// EscapedOnly refuses tags that print a value as it is: {{{name}}} and {{& name}}.
	EscapedOnly bool
	// Mustache makes names that the current context lacks be looked up in the outer ones, lets templates change their delimiters, and
	// prints nothing for a partial that isn't there: the three things in which Handlebars departs from the Mustache specification.
	Mustache bool
	// Limits bound the reading and each execution.
	Limits Limits
}

// Template is a template that was read, with its partials. It doesn't change any more: goroutines may share it.
type Template struct {
	options  Options
	limits   Limits
	main     *source
	partials map[string]*source
}

// Parse reads a template. What is wrong with it, or with a partial it includes, is reported as an *Error with its place: a fault of syntax,
// a helper or partial that isn't there, a partial that includes itself come what may, or a limit passed.
func Parse(text string, o Options) (*Template, error) {
	t := &Template{options: o, limits: o.Limits.withDefaults(), partials: map[string]*source{}}
	l := loader{template: t, inlines: map[string]bool{}, queued: map[string]bool{}}
	main, err := l.read("", text)
	if err != nil {
		return nil, err
	}
	t.main = main
	l.layOut(main)
	if err := l.readPartials(); err != nil {
		return nil, err
	}
	if err := l.findCycle(); err != nil {
		return nil, err
	}
	return t, nil
}
