package handlebars

// partialBlockName is the name of the block that was passed to a partial.
const partialBlockName = "@partial-block"

// partial reads {{> name context key=value}}, or {{#> name}} with the block that is passed to the partial.
func (p *parser) partial(t tag) node {
	n, name := p.partialHead(t)
	p.shutTag(tokenClose, &n.strip)
	if t.kind == tagPartialBlock {
		defer p.enter(t.offset)()
		n.block = &program{}
		n.closeStrip = p.shutBlock(p.statements(n.block), name, t.offset)
	}
	switch {
	case n.dynamic != nil:
		p.loader.dynamic = true
	case n.name == partialBlockName:
		p.loader.opens = true
	default:
		p.loader.calls = append(p.loader.calls, reference{
			from: p.src, name: n.name, offset: n.offset, always: p.depth == 0, spare: n.block != nil,
		})
	}
	return n
}

// partialHead reads the name, which may be computed, and the arguments of a partial.
func (p *parser) partialHead(t tag) (n *partial, name string) {
	n = &partial{strip: t.strip, offset: t.offset}
	if p.peek().kind == tokenOpen {
		n.dynamic = p.param()
	} else {
		name = p.name()
		n.name = name
	}
	var v invocation
	p.arguments(&v)
	if len(v.args) > 1 {
		panic(p.fault(t.offset, "a partial takes one context, and arguments with names"))
	}
	if len(v.args) == 1 {
		n.context = v.args[0]
	}
	n.hash = v.hash
	return n, name
}

// inline reads {{#*inline "name"}} … {{/inline}}.
func (p *parser) inline(t tag) node {
	v := p.invocation()
	given := ""
	if len(v.args) == 1 {
		if l, ok := v.args[0].(literal); ok {
			given, _ = l.value.(string)
		}
	}
	if v.name() != "inline" || given == "" {
		panic(p.fault(t.offset, "an inline partial is declared with its name in quotes: {{#*inline \"name\"}}"))
	}
	d := &inline{name: given, openStrip: t.strip, program: &program{}}
	p.shutTag(tokenClose, &d.openStrip)
	defer p.enter(t.offset)()
	end := p.statements(d.program)
	p.loader.inlines[given] = true
	d.closeStrip = p.shutBlock(end, "inline", t.offset)
	return d
}
