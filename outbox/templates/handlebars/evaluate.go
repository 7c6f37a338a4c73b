package handlebars

import "strconv"

// value evaluates an expression.
func (r *run) value(x expression, e *env) any {
	switch x := x.(type) {
	case literal:
		return x.value
	case *path:
		return r.follow(x, e)
	}
	return r.invoke(x.(*call), e)
}

// follow returns the value of a path, or undefined.
func (r *run) follow(p *path, e *env) any {
	r.spend(1+len(p.parts), p.offset)
	v, parts := r.start(p, e), p.parts
	if p.data && len(parts) > 0 {
		parts = parts[1:]
	}
	if r.template.options.Mustache && !p.data && !p.param && !p.scoped && len(parts) > 0 {
		v, parts = findOutwards(e.frame, parts[0]), parts[1:]
	}
	for _, name := range parts {
		if s, ok := v.(string); ok {
			r.spend(len(s)/64, p.offset)
		}
		v = property(v, name)
	}
	switch v.(type) {
	case nil, undefined, bool, string, markup, map[string]any, []any:
		return v
	}
	if _, ok := number(v); !ok {
		panic(r.src.errorAt(p.offset, nil, "%s is of a kind that templates can't use: %T", p.original, v))
	}
	return v
}

// start returns the value that a path starts from.
func (r *run) start(p *path, e *env) any {
	switch {
	case p.param:
		at := e.params
		for range p.level {
			at = at.outer
		}
		if p.index >= at.count {
			return undefined{}
		}
		return at.values[p.index]
	case p.data && len(p.parts) == 0:
		return undefined{}
	case p.data && p.parts[0] == partialBlockName[1:]:
		return e.block != nil
	case p.data:
		at := e.data
		for n := p.depth; n > 0 && at != nil; n-- {
			at = at.outer
		}
		return at.find(p.parts[0])
	}
	f := e.frame
	for n := p.depth; n > 0 && f != nil; n-- {
		f = f.outer
	}
	if f == nil {
		return undefined{}
	}
	return f.value
}

// findOutwards looks up a name in the current context, then in the outer ones.
func findOutwards(f *frame, name string) any {
	for ; f != nil; f = f.outer {
		v := property(f.value, name)
		if _, gone := v.(undefined); !gone && v != nil {
			return v
		}
	}
	return undefined{}
}

// invoke calls a helper.
func (r *run) invoke(c *call, e *env) any {
	in := invoked{run: r, call: c}
	if len(c.args) <= len(in.room) {
		in.args = in.room[:0]
	}
	for _, a := range c.args {
		v := r.value(a, e)
		if _, gone := v.(undefined); gone && c.helper.needs {
			r.miss(a)
		}
		in.args = append(in.args, v)
	}
	for _, p := range c.hash {
		in.hash = append(in.hash, r.value(p.value, e))
	}
	v := c.helper.call(&in)
	r.spend(1+size(v)/64, c.offset)
	return v
}

func size(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case markup:
		return len(v)
	}
	return 0
}

// textOf returns the printed form of a value; for a list, its elements with commas.
func (r *run) textOf(v any, offset int) string {
	if list, ok := v.([]any); ok {
		return string(r.listText(nil, list, offset, 0))
	}
	return plainText(v)
}

func (r *run) listText(to []byte, list []any, offset, depth int) []byte {
	if most := r.template.limits.Nesting; depth > most {
		panic(r.src.errorAt(offset, ErrLimit, "a list inside more than %d others", most))
	}
	for i, v := range list {
		if i > 0 {
			to = append(to, ',')
		}
		r.spend(1, offset)
		if inner, ok := v.([]any); ok {
			to = r.listText(to, inner, offset, depth+1)
		} else {
			to = append(to, plainText(v)...)
		}
		r.mustFit(len(to) <= r.out.limit)
	}
	return to
}

// keyText returns a value as a member name: {{lookup list 2}}.
func keyText(v any) string {
	if i, ok := v.(int); ok {
		return strconv.Itoa(i)
	}
	return plainText(v)
}
