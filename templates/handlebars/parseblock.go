package handlebars

import "strings"

// output reads a tag that prints a value.
func (p *parser) output(t tag) (node, error) {
	o := &output{raw: t.kind != tagOutput, strip: t.strip, offset: t.offset}
	if o.raw && p.loader.template.options.EscapedOnly {
		return nil, p.fault(t.offset, "values can't be printed unescaped here: write {{name}}")
	}
	v, err := p.invocation()
	if err != nil {
		return nil, err
	}
	if o.value, err = (resolver{p}).resolve(v); err != nil {
		return nil, err
	}
	if t.kind != tagTriple {
		return o, p.shutTag(tokenClose, &o.strip)
	}
	if !customDelimiters(p) {
		return o, p.shutTag(tokenCloseTriple, &o.strip)
	}
	if !p.skip("}") {
		return nil, p.fault(p.at, "the tag was opened with a brace and isn't closed with one")
	}
	return o, p.shutTag(tokenClose, &o.strip)
}

// block reads a block with all that is inside, up to the tag that closes it.
func (p *parser) block(t tag) (node, error) {
	b, names, err := p.blockHead(t)
	if err != nil {
		return nil, err
	}
	if err := p.enter(t.offset); err != nil {
		return nil, err
	}
	defer p.leave()
	inside := &program{}
	end, err := p.inside(inside, names)
	if err != nil {
		return nil, err
	}
	rest, end, err := p.branches(end, t.kind == tagBlock, 0)
	if err != nil {
		return nil, err
	}
	if b.closeStrip, err = p.shutBlock(end, b.name, b.offset); err != nil {
		return nil, err
	}
	b.attach(inside, rest, b.closeStrip)
	if t.kind == tagInverse {
		b.program, b.inverse = b.inverse, b.program
	}
	return b, nil
}

// blockHead reads the opening tag of a block, or {{else name …}}.
func (p *parser) blockHead(t tag) (*block, []string, error) {
	v, err := p.invocation()
	if err != nil {
		return nil, nil, err
	}
	b := &block{openStrip: t.strip, offset: t.offset, name: v.name()}
	names, err := p.blockParams()
	if err != nil {
		return nil, nil, err
	}
	if t.kind == tagInverse && len(names) > 0 {
		return nil, nil, p.fault(t.offset, "a block that begins with ^ has no block parameters")
	}
	b.blockParams = len(names)
	if err := (resolver{p}).resolveBlock(b, v); err != nil {
		return nil, nil, err
	}
	return b, names, p.shutTag(tokenClose, &b.openStrip)
}

// inside reads the inside of a block, in which the names of its parameters hold.
func (p *parser) inside(into *program, names []string) (tag, error) {
	if len(names) == 0 {
		return p.statements(into)
	}
	p.scopes = append(p.scopes, names)
	end, err := p.statements(into)
	p.scopes = p.scopes[:len(p.scopes)-1]
	return end, err
}

// branch is what follows {{else}} or {{else name}}.
type branch struct {
	program *program
	strip   strip
}

// branches reads what follows an else, and returns the tag that ends it. {{else name}} makes a block inside a
// program of its own, as if written {{else}}{{#name}}…{{/name}}.
func (p *parser) branches(end tag, chains bool, count int) (*branch, tag, error) {
	switch {
	case end.kind == tagElse:
		b := &branch{program: &program{}, strip: end.strip}
		end, err := p.statements(b.program)
		if err == nil && (end.kind == tagElse || end.kind == tagElseChain) {
			err = p.fault(end.offset, "a block has one else at most, as its last branch")
		}
		return b, end, err
	case end.kind != tagElseChain:
		return nil, end, nil
	case !chains:
		return nil, end, p.fault(end.offset, "a block that begins with ^ has a plain {{else}} at most")
	case count == p.loader.template.limits.Branches:
		return nil, end, p.src.errorAt(end.offset, ErrLimit, "more than %d branches", count)
	}
	b, names, err := p.blockHead(end)
	if err != nil {
		return nil, end, err
	}
	inside := &program{}
	next, err := p.inside(inside, names)
	if err != nil {
		return nil, next, err
	}
	rest, next, err := p.branches(next, true, count+1)
	if err != nil {
		return nil, next, err
	}
	var following strip
	if rest != nil {
		following = rest.strip
	}
	b.closeStrip = following
	b.attach(inside, rest, following)
	return &branch{program: &program{body: []node{b}, chained: true}, strip: b.openStrip}, next, nil
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
func (p *parser) shutBlock(end tag, name string, opened int) (strip, error) {
	switch end.kind {
	case tagEnd:
		return strip{}, p.fault(opened, "the block %q isn't closed", name)
	case tagElse, tagElseChain:
		return strip{}, p.fault(end.offset, "%q has no else", name)
	}
	closing, err := p.name()
	if err != nil {
		return strip{}, err
	}
	if closing != name {
		return strip{}, p.fault(end.offset, "%q closes a block that was opened as %q", closing, name)
	}
	err = p.shutTag(tokenClose, &end.strip)
	return end.strip, err
}

// rawBlock reads {{{{name}}}} … {{{{/name}}}}, whose inside is text, whatever it looks like.
func (p *parser) rawBlock(t tag) (node, error) {
	v, err := p.invocation()
	if err != nil {
		return nil, err
	}
	b := &block{offset: t.offset, name: v.name()}
	if err := (resolver{p}).resolveBlock(b, v); err != nil {
		return nil, err
	}
	if err := p.shutTag(tokenCloseRaw, &b.openStrip); err != nil {
		return nil, err
	}
	end, next, err := p.rawEnd(t)
	if err != nil {
		return nil, err
	}
	text, closing := p.src.text[p.at:end], p.src.text[end+len("{{{{/"):next-len("}}}}")]
	if strings.TrimFunc(closing, isSpace) != b.name {
		return nil, p.fault(end, "%q closes a raw block that was opened as %q", closing, b.name)
	}
	b.program = &program{}
	if text != "" {
		b.program.body = []node{&content{value: text, original: text}}
	}
	p.at = next
	return b, nil
}

// rawEnd finds the tag that closes a raw block, past other raw blocks inside it.
func (p *parser) rawEnd(t tag) (start, next int, err error) {
	text := p.src.text
	for at, depth := p.at, 1; ; {
		i := strings.Index(text[at:], "{{{{")
		if i < 0 {
			return 0, 0, p.fault(t.offset, "the raw block isn't closed")
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
			return start, at, nil
		}
	}
}
