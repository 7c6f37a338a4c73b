package handlebars

import "strings"

// Variable is a variable that a template uses.
type Variable struct {
	Name         string // its path from the root of the data, such as "order.items[].price"
	Template     string // the partial; empty for the template itself
	Line, Column int    // where it is first used
}

// maxVariables is the maximum number of listed variables.
const maxVariables = 1000

// Variables lists the variables of the template, each name once, in order of the text. It follows names
// through each, with, sections, block parameters and partials. It omits names that only data can resolve,
// such as a computed name. A name without list marks, such as "order", may be of any type.
func (t *Template) Variables() []Variable {
	l := lister{template: t, seen: map[string]bool{}, src: t.main}
	l.program(t.main.main, namespace{contexts: []string{""}})
	return l.found
}

// lister walks through a template.
type lister struct {
	template *Template
	src      *source
	depth    int
	steps    int
	found    []Variable
	seen     map[string]bool
}

// namespace is the meaning of names: the paths of the contexts (innermost last) and block parameters, and the
// arguments of a partial, which hide data of the same name. An unknown path is "?".
type namespace struct {
	contexts []string
	params   [][]string
	hidden   map[string]bool
}

const unknownPath = "?"

func (n namespace) enter(context string) namespace {
	n.contexts = append(n.contexts[:len(n.contexts):len(n.contexts)], context)
	n.hidden = nil
	return n
}

func (n namespace) declare(count int, paths ...string) namespace {
	if count == 0 {
		return n
	}
	for len(paths) < count {
		paths = append(paths, unknownPath)
	}
	n.params = append(n.params[:len(n.params):len(n.params)], paths)
	return n
}

func (l *lister) program(p *program, at namespace) {
	if l.steps++; p == nil || l.steps > 10_000 {
		return
	}
	for _, n := range p.body {
		switch n := n.(type) {
		case *output:
			l.expression(n.value, at)
		case *block:
			l.block(n, at)
		case *partial:
			l.partial(n, at)
		case *inline:
			l.program(n.program, at)
		}
	}
}

func (l *lister) block(b *block, at namespace) {
	context := l.expression(b.value, at)
	inside := at
	switch b.kind {
	case each:
		inside = at.enter(element(context)).declare(b.blockParams, element(context))
	case with:
		inside = at.enter(context).declare(b.blockParams, context)
	case section:
		inside = at.enter(context).declare(b.blockParams, element(context))
	default:
		inside = at.declare(b.blockParams)
	}
	l.program(b.program, inside)
	l.program(b.inverse, at)
}

func element(list string) string {
	if list == unknownPath {
		return list
	}
	return list + "[]"
}

func (l *lister) partial(n *partial, at namespace) {
	l.expression(n.dynamic, at)
	inside := namespace{contexts: []string{at.contexts[len(at.contexts)-1]}, hidden: at.hidden}
	if n.context != nil {
		inside = namespace{contexts: []string{l.expression(n.context, at)}}
	}
	if len(n.hash) > 0 {
		hidden := map[string]bool{}
		for name := range inside.hidden {
			hidden[name] = true
		}
		for _, p := range n.hash {
			l.expression(p.value, at)
			hidden[p.name] = true
		}
		inside.hidden = hidden
	}
	l.program(n.block, at)
	if src := l.template.partials[n.name]; src != nil && l.depth < l.template.limits.PartialDepth {
		caller := l.src
		l.src = src
		l.depth++
		l.program(src.main, inside)
		l.depth--
		l.src = caller
	}
}

// expression records the variables of an expression and returns the path of its value.
func (l *lister) expression(x expression, at namespace) string {
	switch x := x.(type) {
	case *path:
		return l.path(x, at)
	case *call:
		for _, a := range x.args {
			l.expression(a, at)
		}
		for _, p := range x.hash {
			l.expression(p.value, at)
		}
	}
	return unknownPath
}

func (l *lister) path(p *path, at namespace) string {
	base, parts := unknownPath, p.parts
	switch {
	case p.data:
		if len(parts) == 0 || parts[0] != "root" {
			return unknownPath
		}
		base, parts = "", parts[1:]
	case p.param:
		names := at.params
		if p.level < len(names) {
			base = names[len(names)-1-p.level][p.index]
		}
	case p.depth < len(at.contexts):
		if p.depth == 0 && len(parts) > 0 && at.hidden[parts[0]] {
			return unknownPath
		}
		base = at.contexts[len(at.contexts)-1-p.depth]
	}
	if base == unknownPath {
		return base
	}
	full := strings.TrimPrefix(base+"."+strings.Join(parts, "."), ".")
	if len(parts) == 0 {
		return base
	}
	if !l.seen[full] && len(l.found) < maxVariables {
		l.seen[full] = true
		line, column := l.src.place(p.offset)
		l.found = append(l.found, Variable{Name: full, Template: l.src.name, Line: line, Column: column})
	}
	return full
}
