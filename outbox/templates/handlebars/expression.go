package handlebars

import (
	"slices"
	"strconv"
)

// invocation is the content of a tag before its first name is resolved to a helper or a variable.
type invocation struct {
	target expression // *path or literal
	args   []expression
	hash   []pair
	offset int
}

// name is the first name as it was written.
func (v *invocation) name() string {
	if p, ok := v.target.(*path); ok {
		return p.original
	}
	switch value := v.target.(literal).value.(type) {
	case nil:
		return "null"
	case undefined:
		return "undefined"
	default:
		return plainText(value)
	}
}

// invocation reads a name and its arguments.
func (p *parser) invocation() invocation {
	v := invocation{offset: p.peek().offset}
	v.target = p.operand()
	p.arguments(&v)
	return v
}

// arguments reads arguments, those with names last.
func (p *parser) arguments(v *invocation) {
	for {
		t := p.peek()
		switch t.kind {
		case tokenID, tokenLiteralID:
			if name, ok := p.hashName(); ok {
				v.hash = append(v.hash, pair{name, p.param()})
				continue
			}
		case tokenString, tokenNumber, tokenWord, tokenAt, tokenOpen:
		default:
			return
		}
		if len(v.hash) > 0 {
			panic(p.fault(t.offset, "arguments without a name stand before those with one"))
		}
		v.args = append(v.args, p.param())
	}
}

// hashName reads name= if it is next.
func (p *parser) hashName() (string, bool) {
	start := p.at
	name := p.token()
	if p.peek().kind != tokenEquals {
		p.at = start
		return "", false
	}
	p.token()
	return name.text, true
}

// param reads one argument: a value, a path, or a helper call in parentheses.
func (p *parser) param() expression {
	t := p.peek()
	if t.kind != tokenOpen {
		return p.operand()
	}
	defer p.enter(t.offset)()
	p.token()
	v := p.invocation()
	if shut := p.token(); shut.kind != tokenShut {
		panic(p.unexpected(shut))
	}
	return resolver{p}.resolve(v)
}

// operand reads a value or a path.
func (p *parser) operand() expression {
	t := p.peek()
	switch t.kind {
	case tokenString:
		p.token()
		return literal{t.text}
	case tokenNumber:
		p.token()
		n, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			panic(p.fault(t.offset, "%s is too large a number", t.text))
		}
		return literal{n}
	case tokenWord:
		p.token()
		return literal{map[string]any{"true": true, "false": false, "null": nil, "undefined": undefined{}}[t.text]}
	}
	return p.path()
}

// path reads names joined by dots or slashes.
func (p *parser) path() *path {
	first := p.token()
	result := &path{offset: first.offset}
	if first.kind == tokenAt {
		result.data, result.original = true, "@"
		first = p.token()
	}
	for part := first; ; part = p.token() {
		switch {
		case part.kind == tokenLiteralID,
			part.kind == tokenNumber && part.offset > result.offset && part.text[0] != '-': // list.0
			result.parts = append(result.parts, part.text)
		case part.kind != tokenID:
			panic(p.unexpected(part))
		case part.text != ".." && part.text != "." && part.text != "this":
			result.parts = append(result.parts, part.text)
		case len(result.parts) > 0:
			panic(p.fault(part.offset, "%q may only stand at the beginning of a path", part.text))
		default:
			result.scoped = true
			result.depth += btoi(part.text == "..")
		}
		result.original += part.text
		separator := p.peek()
		if separator.kind != tokenSeparator {
			break
		}
		p.token()
		result.original += p.src.text[separator.offset:separator.end]
	}
	p.bind(result)
	return result
}

// bind finds the block parameter at the start of a path, if any.
func (p *parser) bind(v *path) {
	if v.data || v.scoped || len(v.parts) == 0 {
		return
	}
	for level := range p.scopes {
		names := p.scopes[len(p.scopes)-1-level]
		if i := slices.Index(names, v.parts[0]); i >= 0 {
			v.param, v.level, v.index = true, level, i
			v.parts = v.parts[1:]
			return
		}
	}
}

// name reads the name of a partial or of a closing tag.
func (p *parser) name() string {
	v := invocation{target: p.operand()}
	return v.name()
}

// blockParams reads as |x y|, if present.
func (p *parser) blockParams() (names []string) {
	if p.peek().kind != tokenAs {
		return nil
	}
	p.token()
	for {
		t := p.token()
		switch {
		case t.kind == tokenID || t.kind == tokenLiteralID:
			names = append(names, t.text)
		case t.kind == tokenPipe && len(names) > 0:
			return names
		default:
			panic(p.unexpected(t))
		}
	}
}
