package handlebars

// partialBlockName is what a partial calls the block that was handed to it.
const partialBlockName = "@partial-block"

// partial reads {{> name context key=value}}.
func (p *parser) partial(t tag) (node, error) {
	n, _, err := p.partialHead(t)
	if err != nil {
		return nil, err
	}
	if err := p.shutTag(tokenClose, &n.strip); err != nil {
		return nil, err
	}
	p.refer(n)
	return n, nil
}

// partialBlock reads {{#> name}} with the block that is handed to the partial.
func (p *parser) partialBlock(t tag) (node, error) {
	n, name, err := p.partialHead(t)
	if err != nil {
		return nil, err
	}
	if err := p.shutTag(tokenClose, &n.strip); err != nil {
		return nil, err
	}
	if err := p.enter(t.offset); err != nil {
		return nil, err
	}
	defer p.leave()
	n.block = &program{}
	end, err := p.statements(n.block)
	if err != nil {
		return nil, err
	}
	if n.closeStrip, err = p.shutBlock(end, name, t.offset); err != nil {
		return nil, err
	}
	p.refer(n)
	return n, nil
}

// partialHead reads the name, which may be computed, and the arguments of a partial.
func (p *parser) partialHead(t tag) (*partial, string, error) {
	n := &partial{strip: t.strip, offset: t.offset}
	name := ""
	if p.peek().kind == tokenOpen {
		e, err := p.param()
		if err != nil {
			return nil, "", err
		}
		n.dynamic = e
	} else {
		var err error
		if name, err = p.name(); err != nil {
			return nil, "", err
		}
		n.name = name
	}
	var v invocation
	if err := p.arguments(&v); err != nil {
		return nil, "", err
	}
	if len(v.args) > 1 {
		return nil, "", p.fault(t.offset, "a partial takes one context, and arguments with names")
	}
	if len(v.args) == 1 {
		n.context = v.args[0]
	}
	n.hash = v.hash
	return n, name, nil
}

// refer notes which partial is needed.
func (p *parser) refer(n *partial) {
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
}

// inline reads {{#*inline "name"}} … {{/inline}}.
func (p *parser) inline(t tag) (node, error) {
	v, err := p.invocation()
	if err != nil {
		return nil, err
	}
	given := ""
	if len(v.args) == 1 {
		if l, ok := v.args[0].(literal); ok {
			given, _ = l.value.(string)
		}
	}
	if v.name() != "inline" || given == "" {
		return nil, p.fault(t.offset,
			"an inline partial is declared with its name in quotes: {{#*inline \"name\"}}")
	}
	d := &inline{name: given, openStrip: t.strip, program: &program{}}
	if err := p.shutTag(tokenClose, &d.openStrip); err != nil {
		return nil, err
	}
	if err := p.enter(t.offset); err != nil {
		return nil, err
	}
	defer p.leave()
	end, err := p.statements(d.program)
	if err != nil {
		return nil, err
	}
	p.loader.inlines[given] = true
	d.closeStrip, err = p.shutBlock(end, "inline", t.offset)
	return d, err
}
