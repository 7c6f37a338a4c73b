package handlebars

import (
	"maps"
	"slices"
)

// block executes a block: one of its programs, any number of times.
func (r *run) block(b *block, e *env) error {
	if b.kind == verbatim {
		return r.program(b.program, *e, e.frame)
	}
	v, err := r.value(b.value, e, b.offset)
	if err != nil {
		return err
	}
	switch b.kind {
	case section:
		return r.section(b, v, e)
	case each:
		return r.each(b, v, e)
	case with:
		if empty(v) {
			return r.program(b.inverse, *e, e.frame)
		}
		return r.with(b, v, e)
	}
	if truthy(v) != b.negated {
		return r.program(b.program, r.params(b, *e), e.frame)
	}
	return r.program(b.inverse, *e, e.frame)
}

// section executes {{#name}}. False and missing values choose the other branch, a list is repeated, an object
// is entered.
func (r *run) section(b *block, v any, e *env) error {
	if r.template.options.Mustache && !truthy(v) {
		v = false
	}
	switch v := v.(type) {
	case nil, undefined:
		return r.program(b.inverse, *e, e.frame)
	case bool:
		if v {
			return r.program(b.program, r.params(b, *e), e.frame)
		}
		return r.program(b.inverse, *e, e.frame)
	case []any:
		return r.each(b, v, e)
	}
	inside := r.params(b, *e)
	inside.frame = e.frame.enter(v)
	return r.program(b.program, inside, e.frame)
}

func (r *run) with(b *block, v any, e *env) error {
	inside := r.params(b, *e, v)
	inside.frame = e.frame.enter(v)
	return r.program(b.program, inside, e.frame)
}

// params returns the environment inside a block, with its block parameters.
func (r *run) params(b *block, e env, values ...any) env {
	if b.blockParams > 0 {
		p := &params{outer: e.params}
		p.count = copy(p.values[:], values)
		e.params = p
	}
	return e
}

// each repeats a block for the elements of a list or the members of an object, sorted by name, numbers first.
func (r *run) each(b *block, v any, e *env) error {
	switch v := v.(type) {
	case []any:
		for i, element := range v {
			if err := r.once(b, e, element, i, i, len(v)); err != nil {
				return err
			}
		}
		if len(v) > 0 {
			return nil
		}
	case map[string]any:
		if err := r.spend(len(v), b.offset); err != nil {
			return err
		}
		for i, name := range slices.SortedFunc(maps.Keys(v), compareNames) {
			if err := r.once(b, e, v[name], name, i, len(v)); err != nil {
				return err
			}
		}
		if len(v) > 0 {
			return nil
		}
	}
	return r.program(b.inverse, *e, e.frame)
}

// once executes the inside of a repeated block for one element.
func (r *run) once(b *block, e *env, element, key any, i, count int) error {
	if err := r.spend(1, b.offset); err != nil {
		return err
	}
	inside := *e
	if b.blockParams > 0 {
		inside.params = &params{values: [2]any{element, key}, count: 2, outer: e.params}
	}
	inside.frame = e.frame.enter(element)
	inside.data = &variables{outer: e.data, repeats: true, key: key, index: i, first: i == 0, last: i == count-1}
	return r.program(b.program, inside, e.frame)
}

// compareNames orders the members of an object: numbers by value, then other names. JavaScript keeps the
// written order of names, which a Go map does not have.
func compareNames(a, b string) int {
	x, y := index(a), index(b)
	switch {
	case x >= 0 && y >= 0:
		return x - y
	case x >= 0:
		return -1
	case y >= 0:
		return 1
	case a < b:
		return -1
	}
	return btoi(a > b)
}
