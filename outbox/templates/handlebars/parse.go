package handlebars

import "strings"

// parser reads one source.
type parser struct {
	loader     *loader
	src        *source
	at         int    // where to read next
	limit      int    // tokens end here: the end of the source, or of the tag if delimiters changed
	open, shut string // the delimiters
	scopes     [][]string
	depth      int // blocks around, and expressions around inside a tag
}

// customDelimiters reports whether the delimiters were changed.
func customDelimiters(p *parser) bool { return p.open != "{{" || p.shut != "}}" }

// parse reads the whole source.
func (p *parser) parse() *program {
	main := &program{}
	switch last := p.statements(main); last.kind {
	case tagShut:
		panic(p.fault(last.offset, "this closes a block that isn't open"))
	case tagElse, tagElseChain:
		panic(p.fault(last.offset, "else outside of a block"))
	}
	return main
}

func (p *parser) fault(offset int, format string, args ...any) *Error {
	return p.src.errorAt(offset, nil, format, args...)
}

// statements reads into a program, up to a tag that ends or divides it, which it returns.
func (p *parser) statements(into *program) tag {
	for p.text(into) {
		t := p.tag()
		if t.kind == tagShut || t.kind == tagElse || t.kind == tagElseChain {
			return t
		}
		n := p.statement(t)
		into.body = append(into.body, n)
		if d, ok := n.(*inline); ok {
			into.inlines = append(into.inlines, d)
		}
	}
	return tag{kind: tagEnd, offset: len(p.src.text)}
}

// statement reads the rest of a tag, and for a block all that belongs to it.
func (p *parser) statement(t tag) node {
	switch t.kind {
	case tagComment:
		return p.comment(t)
	case tagDelimiters:
		return p.delimiters(t)
	case tagPartial, tagPartialBlock:
		return p.partial(t)
	case tagInline:
		return p.inline(t)
	case tagRawBlock:
		return p.rawBlock(t)
	case tagBlock, tagInverse:
		return p.block(t)
	}
	return p.output(t)
}

// text reads up to the next tag, and reports whether there is one. A backslash before a tag makes it text;
// two make one backslash.
func (p *parser) text(into *program) bool {
	add := func(s string) {
		if s != "" {
			into.body = append(into.body, &content{value: s, original: s})
		}
	}
	for {
		rest := p.src.text[p.at:]
		i := strings.Index(rest, p.open)
		if i < 0 {
			add(rest)
			p.at = len(p.src.text)
			return false
		}
		before := rest[:i]
		switch {
		case customDelimiters(p) || !strings.HasSuffix(before, `\`):
			add(before)
			p.at += i
			return true
		case strings.HasSuffix(before, `\\`):
			add(before[:i-1])
			p.at += i
			return true
		}
		add(before[:i-1])
		end := escapedEnd(rest, i+2)
		add(rest[i:end])
		p.at += end
	}
}

// escapedEnd finds where the text that begins with an escaped tag ends: before the next tag and its
// backslashes.
func escapedEnd(s string, from int) int {
	i := strings.Index(s[from:], "{{")
	if i < 0 {
		return len(s)
	}
	end := from + i
	for n := 0; n < 2 && end > from && s[end-1] == '\\'; n++ {
		end--
	}
	return end
}

// shutTag reads the end of a tag.
func (p *parser) shutTag(want tokenKind, s *strip) {
	t := p.token()
	if t.kind != want {
		panic(p.unexpected(t))
	}
	s.close = t.tilde
	p.limit = len(p.src.text)
}

// unexpected returns the error for an unexpected token.
func (p *parser) unexpected(t token) *Error {
	switch t.kind {
	case tokenEnd:
		return p.fault(t.offset, "the template ends inside a tag")
	case tokenClose, tokenCloseTriple, tokenCloseRaw:
		return p.fault(t.offset, "the tag ends too early, or with a wrong number of braces: %s",
			p.src.text[t.offset:t.end])
	}
	return p.fault(t.offset, "%q doesn't belong here", p.src.text[t.offset:t.end])
}

// enter increments the nesting depth. The function it returns decrements it.
func (p *parser) enter(offset int) (leave func()) {
	p.depth++
	if most := p.loader.template.limits.Nesting; p.depth > most {
		panic(p.src.errorAt(offset, ErrLimit, "nested more than %d deep", most))
	}
	return func() { p.depth-- }
}
