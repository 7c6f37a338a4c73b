package handlebars

import (
	"maps"
	"slices"
	"strings"
)

// loader parses a template and every partial it can reach.
type loader struct {
	template *Template
	total    int // bytes read so far
	inlines  map[string]bool
	calls    []reference     // calls of partials seen so far
	queued   map[string]bool // partials that are parsed or scheduled
	dynamic  bool            // some partial name is computed, so any partial may be needed
	opens    bool            // some source prints the block passed to it
}

// reference is a call of a partial by a fixed name.
type reference struct {
	from   *source
	name   string
	offset int
	always bool // the call is outside any block, so from always executes name
	spare  bool // it has a block to print if the partial does not exist
}

// read parses one source.
func (l *loader) read(name, text string) *source {
	s := &source{name: name, text: text}
	limits := l.template.limits
	l.total += len(text)
	switch {
	case len(text) > limits.Source:
		panic(tooLong(name, "the source", limits.Source))
	case l.total > limits.TotalSource:
		panic(tooLong(name, "the template with its partials", limits.TotalSource))
	}
	p := parser{loader: l, src: s, limit: len(text), open: "{{", shut: "}}"}
	s.main = p.parse()
	s.main.trim(true)
	return s
}

// layOut passes the template to its layout.
func (l *loader) layOut(main *source) {
	name := l.template.options.Layout
	if name == "" {
		return
	}
	l.calls = append(l.calls, reference{from: main, name: name, always: true})
	main.main = &program{body: []node{&partial{name: name, block: main.main}}}
}

// readPartials parses all reachable partials; all given ones if a name is computed.
func (l *loader) readPartials() {
	for done := 0; ; {
		if l.dynamic {
			for _, name := range slices.Sorted(maps.Keys(l.template.options.Partials)) {
				l.readPartial(name)
			}
		}
		if done == len(l.calls) {
			break
		}
		for ; done < len(l.calls); done++ {
			l.readPartial(l.calls[done].name)
		}
	}
	for _, c := range l.calls {
		if l.template.partials[c.name] == nil && !l.inlines[c.name] && !c.spare && !l.template.options.Mustache {
			panic(c.from.errorAt(c.offset, nil, "there is no partial %q", c.name))
		}
	}
}

func (l *loader) readPartial(name string) {
	if text, exists := l.template.options.Partials[name]; exists && !l.queued[name] {
		l.queued[name] = true
		l.template.partials[name] = l.read(name, text)
	}
}

// findCycle refuses a partial that always includes itself. Recursion inside a block may be intended, to print
// a tree; Limits.PartialDepth bounds it.
func (l *loader) findCycle() {
	next := map[string][]reference{}
	for _, c := range l.calls {
		if c.always && !l.inlines[c.name] && l.template.partials[c.name] != nil {
			next[c.from.name] = append(next[c.from.name], c)
		}
	}
	finished := map[string]bool{}
	var visit func(name string, trail []string)
	visit = func(name string, trail []string) {
		for _, c := range next[name] {
			if at := slices.Index(trail, c.name); at >= 0 {
				round := strings.Join(append(trail[at:], c.name), " > ")
				panic(c.from.errorAt(c.offset, ErrLimit, "the partial includes itself: %s", round))
			}
			if !finished[c.name] {
				visit(c.name, append(trail, c.name))
			}
		}
		finished[name] = true
	}
	visit("", nil)
}
