package handlebars

import "strings"

// output reads a tag that prints a value.
func (p *parser) output(t tag) node {
	o := &output{raw: t.kind != tagOutput, strip: t.strip, offset: t.offset}
	if o.raw && p.loader.template.options.EscapedOnly {
		panic(p.fault(t.offset, "values can't be printed unescaped here: write {{name}}"))
	}
	o.value = resolver{p}.resolve(p.invocation())
	end := tokenClose
	if t.kind == tagTriple && !customDelimiters(p) {
		end = tokenCloseTriple
	} else if t.kind == tagTriple && !p.skip("}") {
		panic(p.fault(p.at, "the tag was opened with a brace and isn't closed with one"))
	}
	p.shutTag(end, &o.strip)
	return o
}

// block reads a block with all that is inside, up to the tag that closes it.
func (p *parser) block(t tag) node {
	b, names := p.blockHead(t)
	defer p.enter(t.offset)()
	inside := &program{}
	rest, end := p.branches(p.inside(inside, names), t.kind == tagBlock, 0)
	b.closeStrip = p.shutBlock(end, b.name, b.offset)
	b.attach(inside, rest, b.closeStrip)
	if t.kind == tagInverse {
		b.program, b.inverse = b.inverse, b.program
	}
	return b
}

// blockHead reads the opening tag of a block, or {{else name …}}.
func (p *parser) blockHead(t tag) (b *block, names []string) {
	v := p.invocation()
	b = &block{openStrip: t.strip, offset: t.offset, name: v.name()}
	names = p.blockParams()
	if t.kind == tagInverse && len(names) > 0 {
		panic(p.fault(t.offset, "a block that begins with ^ has no block parameters"))
	}
	b.blockParams = len(names)
	resolver{p}.resolveBlock(b, v)
	p.shutTag(tokenClose, &b.openStrip)
	return b, names
}

// inside reads the inside of a block, in which the names of its parameters hold.
func (p *parser) inside(into *program, names []string) tag {
	if len(names) > 0 {
		p.scopes = append(p.scopes, names)
		defer func() { p.scopes = p.scopes[:len(p.scopes)-1] }()
	}
	return p.statements(into)
}

// branch is the part that follows {{else}} or {{else name}}.
type branch struct {
	program *program
	strip   strip
}

// branches reads what follows an else, and returns the tag that ends it. {{else name}} makes a block inside
// its own program, as if written {{else}}{{#name}}…{{/name}}.
func (p *parser) branches(end tag, chains bool, count int) (*branch, tag) {
	switch {
	case end.kind == tagElse:
		b := &branch{program: &program{}, strip: end.strip}
		end := p.statements(b.program)
		if end.kind == tagElse || end.kind == tagElseChain {
			panic(p.fault(end.offset, "a block has one else at most, as its last branch"))
		}
		return b, end
	case end.kind != tagElseChain:
		return nil, end
	case !chains:
		panic(p.fault(end.offset, "a block that begins with ^ has a plain {{else}} at most"))
	case count == p.loader.template.limits.Branches:
		panic(p.src.errorAt(end.offset, ErrLimit, "more than %d branches", count))
	}
	b, names := p.blockHead(end)
	inside := &program{}
	rest, next := p.branches(p.inside(inside, names), true, count+1)
	if rest != nil {
		b.closeStrip = rest.strip
	}
	b.attach(inside, rest, b.closeStrip)
	return &branch{program: &program{body: []node{b}, chained: true}, strip: b.openStrip}, next
}

// attach joins a block with its branches. The closing tag of a block closes its {{else name}} too, and so
// does what asks for white space.
func (b *block) attach(inside *program, rest *branch, closing strip) {
	b.program = inside
	if rest == nil {
		return
	}
	if rest.program.chained {
		rest.program.body[0].(*block).closeStrip = closing
	}
	b.inverse, b.inverseStrip = rest.program, rest.strip
}

// shutBlock reads the closing tag of a block and compares its name.
func (p *parser) shutBlock(end tag, name string, opened int) strip {
	switch end.kind {
	case tagEnd:
		panic(p.fault(opened, "the block %q isn't closed", name))
	case tagElse, tagElseChain:
		panic(p.fault(end.offset, "%q has no else", name))
	}
	if closing := p.name(); closing != name {
		panic(p.fault(end.offset, "%q closes a block that was opened as %q", closing, name))
	}
	p.shutTag(tokenClose, &end.strip)
	return end.strip
}

// rawBlock reads {{{{name}}}} … {{{{/name}}}}, whose inside is text, whatever it looks like.
func (p *parser) rawBlock(t tag) node {
	v := p.invocation()
	b := &block{offset: t.offset, name: v.name()}
	resolver{p}.resolveBlock(b, v)
	p.shutTag(tokenCloseRaw, &b.openStrip)
	end, next := p.rawEnd(t)
	text, closing := p.src.text[p.at:end], p.src.text[end+len("{{{{/"):next-len("}}}}")]
	if strings.TrimFunc(closing, isSpace) != b.name {
		panic(p.fault(end, "%q closes a raw block that was opened as %q", closing, b.name))
	}
	b.program = &program{}
	if text != "" {
		b.program.body = []node{&content{value: text, original: text}}
	}
	p.at = next
	return b
}

// rawEnd finds the tag that closes a raw block, past other raw blocks inside it.
func (p *parser) rawEnd(t tag) (start, next int) {
	text := p.src.text
	for at, depth := p.at, 1; ; {
		i := strings.Index(text[at:], "{{{{")
		if i < 0 {
			panic(p.fault(t.offset, "the raw block isn't closed"))
		}
		start, at = at+i, at+i+len("{{{{")
		name, isEnd := strings.CutPrefix(text[at:], "/")
		if !isEnd {
			depth++
			continue
		}
		length := nameEnd(name)
		if length == 0 || !strings.HasPrefix(name[length:], "}}}}") {
			continue
		}
		at += 1 + length + len("}}}}")
		if depth--; depth == 0 {
			return start, at
		}
	}
}
