package handlebars

import "strconv"

// value evaluates an expression.
func (r *run) value(x expression, e *env, offset int) (any, error) {
	switch x := x.(type) {
	case literal:
		return x.value, nil
	case *path:
		return r.follow(x, e)
	case *call:
		return r.invoke(x, e)
	}
	return nil, r.src.errorAt(offset, nil, "an expression of an unknown kind")
}

// follow returns the value of a path, or undefined.
func (r *run) follow(p *path, e *env) (any, error) {
	if err := r.spend(1+len(p.parts), p.offset); err != nil {
		return nil, err
	}
	v, parts := r.start(p, e), p.parts
	if p.data && len(parts) > 0 {
		parts = parts[1:]
	}
	if r.template.options.Mustache && !p.data && !p.param && !p.scoped && len(parts) > 0 {
		v, parts = findOutwards(e.frame, parts[0]), parts[1:]
	}
	for _, name := range parts {
		if s, ok := v.(string); ok {
			if err := r.spend(len(s)/64, p.offset); err != nil {
				return nil, err
			}
		}
		v = property(v, name)
	}
	return r.known(v, p)
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
	case p.data:
		return r.startData(p, e)
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

func (r *run) startData(p *path, e *env) any {
	at := e.data
	for n := p.depth; n > 0 && at != nil; n-- {
		at = at.outer
	}
	if len(p.parts) == 0 {
		return undefined{}
	}
	if p.parts[0] == partialBlockName[1:] {
		return e.block != nil
	}
	return at.find(p.parts[0])
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

// known refuses values that are not data.
func (r *run) known(v any, p *path) (any, error) {
	switch v.(type) {
	case nil, undefined, bool, string, markup, map[string]any, []any:
		return v, nil
	}
	if _, ok := number(v); ok {
		return v, nil
	}
	return nil, r.src.errorAt(p.offset, nil, "%s is of a kind that templates can't use: %T", p.original, v)
}

// invoke calls a helper.
func (r *run) invoke(c *call, e *env) (any, error) {
	in := invoked{run: r, call: c}
	if len(c.args) <= len(in.room) {
		in.args = in.room[:0]
	}
	for _, a := range c.args {
		v, err := r.value(a, e, c.offset)
		if err != nil {
			return nil, err
		}
		if _, gone := v.(undefined); gone && c.helper.needs {
			r.miss(a)
		}
		in.args = append(in.args, v)
	}
	for _, p := range c.hash {
		v, err := r.value(p.value, e, c.offset)
		if err != nil {
			return nil, err
		}
		in.hash = append(in.hash, v)
	}
	v, err := c.helper.call(&in)
	if err != nil {
		return nil, err
	}
	return v, r.spend(1+size(v)/64, c.offset)
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
func (r *run) textOf(v any, offset int) (string, error) {
	list, ok := v.([]any)
	if !ok {
		return plainText(v), nil
	}
	text, err := r.listText(nil, list, offset, 0)
	return string(text), err
}

func (r *run) listText(to []byte, list []any, offset, depth int) ([]byte, error) {
	if most := r.template.limits.Nesting; depth > most {
		return to, r.src.errorAt(offset, ErrLimit, "a list inside more than %d others", most)
	}
	for i, v := range list {
		if i > 0 {
			to = append(to, ',')
		}
		if err := r.spend(1, offset); err != nil {
			return to, err
		}
		if inner, ok := v.([]any); ok {
			var err error
			if to, err = r.listText(to, inner, offset, depth+1); err != nil {
				return to, err
			}
			continue
		}
		to = append(to, plainText(v)...)
		if len(to) > r.out.limit {
			return to, r.tooLong()
		}
	}
	return to, nil
}

// keyText returns a value as a member name: {{lookup list 2}}.
func keyText(v any) string {
	if i, ok := v.(int); ok {
		return strconv.Itoa(i)
	}
	return plainText(v)
}
