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
func (l *loader) read(name, text string) (*source, error) {
	s := &source{name: name, text: text}
	limits := l.template.limits
	l.total += len(text)
	switch {
	case len(text) > limits.Source:
		return nil, &Error{Template: name, Err: ErrLimit, Message: sizeMessage("the source", limits.Source)}
	case l.total > limits.TotalSource:
		return nil, &Error{Template: name, Err: ErrLimit, Message: sizeMessage("the template with its partials",
			limits.TotalSource)}
	}
	p := newParser(l, s)
	main, err := p.parse()
	if err != nil {
		return nil, err
	}
	s.main = main
	trimWhiteSpace(main)
	return s, nil
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
func (l *loader) readPartials() error {
	for done := 0; ; {
		if l.dynamic {
			for _, name := range slices.Sorted(maps.Keys(l.template.options.Partials)) {
				if err := l.readPartial(name); err != nil {
					return err
				}
			}
		}
		if done == len(l.calls) {
			break
		}
		for ; done < len(l.calls); done++ {
			if err := l.readPartial(l.calls[done].name); err != nil {
				return err
			}
		}
	}
	return l.findUnknown()
}

func (l *loader) readPartial(name string) error {
	text, exists := l.template.options.Partials[name]
	if !exists || l.queued[name] {
		return nil
	}
	l.queued[name] = true
	s, err := l.read(name, text)
	if err != nil {
		return err
	}
	l.template.partials[name] = s
	return nil
}

// findUnknown reports the first call of a partial that is neither given nor declared.
func (l *loader) findUnknown() error {
	for _, c := range l.calls {
		if l.template.partials[c.name] == nil && !l.inlines[c.name] && !c.spare && !l.template.options.Mustache {
			return c.from.errorAt(c.offset, nil, "there is no partial %q", c.name)
		}
	}
	return nil
}

// findCycle reports a partial that always includes itself. Recursion inside a block may be intended, to print
// a tree; Limits.PartialDepth bounds it.
func (l *loader) findCycle() error {
	next := map[string][]reference{}
	for _, c := range l.calls {
		if c.always && !l.inlines[c.name] && l.template.partials[c.name] != nil {
			next[c.from.name] = append(next[c.from.name], c)
		}
	}
	finished := map[string]bool{}
	var visit func(name string, trail []string) error
	visit = func(name string, trail []string) error {
		for _, c := range next[name] {
			if at := slices.Index(trail, c.name); at >= 0 {
				round := strings.Join(append(trail[at:], c.name), " > ")
				return c.from.errorAt(c.offset, ErrLimit, "the partial includes itself: %s", round)
			}
			if !finished[c.name] {
				if err := visit(c.name, append(trail, c.name)); err != nil {
					return err
				}
			}
		}
		finished[name] = true
		return nil
	}
	return visit("", nil)
}
