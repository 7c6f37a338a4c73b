package handlebars

import (
	"maps"
	"slices"
	"strings"
)

// block executes a block: one of its programs, any number of times.
func (r *run) block(b *block, e *env) {
	if b.kind == verbatim {
		r.program(b.program, *e, e.frame)
		return
	}
	v := r.value(b.value, e)
	if b.kind == section && r.template.options.Mustache && !truthy(v) {
		v = false
	}
	_, isBool := v.(bool)
	_, isList := v.([]any)
	inside := *e
	switch {
	case b.kind == each, b.kind == section && isList:
		r.each(b, v, e)
		return
	case b.kind == condition && truthy(v) == b.negated, b.kind == with && empty(v),
		b.kind == section && (absent(v) || v == false):
		r.program(b.inverse, *e, e.frame)
		return
	case b.kind == with:
		inside = r.params(b, *e, v)
		inside.frame = e.frame.enter(v)
	case b.kind == section && !isBool: // an object is entered
		inside = r.params(b, *e)
		inside.frame = e.frame.enter(v)
	default:
		inside = r.params(b, *e)
	}
	r.program(b.program, inside, e.frame)
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
func (r *run) each(b *block, v any, e *env) {
	list, _ := v.([]any)
	for i, element := range list {
		r.once(b, e, element, i, i, len(list))
	}
	members, _ := v.(map[string]any)
	r.spend(len(members), b.offset)
	for i, name := range slices.SortedFunc(maps.Keys(members), compareNames) {
		r.once(b, e, members[name], name, i, len(members))
	}
	if len(list)+len(members) == 0 {
		r.program(b.inverse, *e, e.frame)
	}
}

// once executes the inside of a repeated block for one element.
func (r *run) once(b *block, e *env, element, key any, i, count int) {
	r.spend(1, b.offset)
	inside := *e
	if b.blockParams > 0 {
		inside.params = &params{values: [2]any{element, key}, count: 2, outer: e.params}
	}
	inside.frame = e.frame.enter(element)
	inside.data = &variables{outer: e.data, repeats: true, key: key, index: i, first: i == 0, last: i == count-1}
	r.program(b.program, inside, e.frame)
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
	}
	return strings.Compare(a, b)
}
