package handlebars

import (
	"maps"
	"slices"
	"strings"
)

// partial executes a call of a partial.
func (r *run) partial(n *partial, e *env) {
	r.spend(1, n.offset)
	if most := r.template.limits.PartialDepth; r.depth >= most {
		panic(r.src.errorAt(n.offset, ErrLimit, "partials more than %d deep: does one include itself?", most))
	}
	name := n.name
	if n.dynamic != nil {
		name = keyText(r.value(n.dynamic, e))
	}
	found, inside, ok := r.findPartial(name, n, e, r.partialContext(n, e))
	if !ok {
		if r.template.options.Mustache {
			return
		}
		panic(r.src.errorAt(n.offset, nil, "there is no partial %q", name))
	}
	caller := r.src
	r.src = found.src
	r.depth++
	r.out.within(n.indent, func() { r.program(found.program, inside, found.outer) })
	r.depth--
	r.src = caller
}

// included is the resolved content of a partial call.
type included struct {
	program *program
	src     *source
	outer   *frame
}

// partialContext returns the partial's context: the current one or its argument, with the named arguments
// added.
func (r *run) partialContext(n *partial, e *env) any {
	context := e.frame.value
	if n.context != nil {
		context = r.value(n.context, e)
	}
	if len(n.hash) == 0 {
		return context
	}
	members, _ := context.(map[string]any)
	r.spend(len(members)+len(n.hash), n.offset)
	joined := make(map[string]any, len(members)+len(n.hash))
	maps.Copy(joined, members)
	for _, p := range n.hash {
		if p.value != (literal{undefined{}}) { // no argument; a missing variable hides the context
			joined[p.name] = r.value(p.value, e)
		}
	}
	return joined
}

// findPartial resolves a name and its environment. It tries, in this order, the block passed to the current
// partial, a partial declared in the template, a given partial, and the block of this call.
func (r *run) findPartial(name string, n *partial, e *env, context any) (included, env, bool) {
	inside := env{data: e.data, partials: e.partials, block: e.block}
	if n.block != nil {
		inside.block = &passed{program: n.block, src: r.src, env: *e}
		inside.data = &variables{outer: e.data}
		if len(n.block.inlines) > 0 { // the partial may use them too
			inside.partials = &scope{declared: n.block.inlines, src: r.src, frame: e.frame, params: e.params,
				next: e.partials}
		}
	}
	if name == partialBlockName && e.block != nil {
		return e.block.open(inside, context)
	}
	if s, program := e.partials.find(name); program != nil {
		inside.frame, inside.params, inside.partials = s.frame.enter(context), s.params, e.partials
		return included{program, s.src, s.frame}, inside, true
	}
	if src := r.template.partials[name]; src != nil {
		inside.frame = &frame{value: context}
		var outer *frame
		if r.template.options.Mustache {
			outer = e.frame
			inside.frame = e.frame.enter(context)
		}
		return included{src.main, src, outer}, inside, true
	}
	if n.block != nil {
		return inside.block.open(inside, context)
	}
	return included{}, inside, false
}

// open returns the content of a passed block. It sees the names where it was written, and that place's outer
// contexts, below the context of the partial that prints it.
func (h *passed) open(caller env, context any) (included, env, bool) {
	inside := h.env
	inside.frame = h.env.frame.enter(context)
	inside.data = &variables{outer: caller.data}
	return included{h.program, h.src, h.env.frame}, inside, true
}

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
