package handlebars

import (
	"slices"
	"sync"
)

// Options are the parse options of a template. The zero value parses Handlebars for html.
type Options struct {
	// Partials are the sources that {{> name}} may include, by name. Only partials that the template can reach
	// are read.
	Partials map[string]string
	// Layout is the name of a partial that gets the whole template as its block, as between {{#> name}} and
	// {{/name}}. The layout prints it with {{> @partial-block}}. Optional.
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

// Parse parses a template. An error in it or in an included partial is an *Error with its position: a syntax
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

// Limits are the resource limits of a template. A zero field means its default; no limit can be disabled.
type Limits struct {
	Source       int // bytes of one template or partial; 256 KB
	TotalSource  int // bytes of a template and all its partials together; 1 MB
	Nesting      int // blocks inside blocks, and expressions inside expressions; 64
	Branches     int // {{else if}} of one block; 256
	PartialDepth int // partials, and blocks passed to them, inside partials; 16
	Steps        int // parts evaluated in one execution; 1,000,000
	Output       int // bytes written by one execution; 2 MB
}

func (l Limits) withDefaults() Limits {
	fill := func(value *int, def int) {
		if *value <= 0 {
			*value = def
		}
	}
	fill(&l.Source, 256<<10)
	fill(&l.TotalSource, 1<<20)
	fill(&l.Nesting, 64)
	fill(&l.Branches, 256)
	fill(&l.PartialDepth, 16)
	fill(&l.Steps, 1_000_000)
	fill(&l.Output, 2<<20)
	return l
}

// References are the partials that a source uses.
type References struct {
	Partials []string // each once, sorted; includes partials that it declares itself
	Computed bool     // some partial name is computed, so any partial may be used
	Block    bool     // it prints the block passed to it: {{> @partial-block}}
}

// Refer parses a source alone and returns the partials it includes, so that they can be loaded before
// [Parse]. It returns the same errors as Parse, except errors about partials.
func Refer(text string, o Options) (References, error) {
	l := loader{template: &Template{options: o, limits: o.Limits.withDefaults()}, inlines: map[string]bool{}}
	if err := catch(func() { l.read("", text) }); err != nil {
		return References{}, err
	}
	r := References{Computed: l.dynamic, Block: l.opens}
	for _, c := range l.calls {
		r.Partials = append(r.Partials, c.name)
	}
	slices.Sort(r.Partials)
	r.Partials = slices.Compact(r.Partials)
	return r, nil
}
