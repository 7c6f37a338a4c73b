package handlebars

import (
	"cmp"
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

// isTrue is the condition of if and unless with the named argument includeZero=true, which makes 0 true.
func isTrue(in *invoked) any {
	n, ok := number(in.args[0])
	return truthy(in.args[0]) || ok && n == 0 && truthy(in.named("includeZero"))
}

// lookUp returns a member with a computed name.
func lookUp(in *invoked) any {
	if v := in.args[0]; !truthy(v) {
		if _, isList := v.([]any); !isList {
			return v // 0 and "" too, as in Handlebars
		}
	}
	in.run.spend(size(in.args[0])/64, in.call.offset)
	return property(in.args[0], keyText(in.args[1]))
}

// logNothing prints and logs nothing: a template must not write to the log.
func logNothing(*invoked) any { return "" }

func and(in *invoked) any { return in.first(func(v any) bool { return !truthy(v) }) }

func or(in *invoked) any { return in.first(truthy) }

func not(in *invoked) any { return !truthy(in.args[0]) }

func equals(in *invoked) any { return equal(in.args[0], in.args[1]) }

func differs(in *invoked) any { return !equal(in.args[0], in.args[1]) }

// equal compares like ===: a number never equals a text. Undefined equals null.
func equal(a, b any) bool {
	switch a.(type) {
	case string, bool:
		return a == b
	case nil, undefined, map[string]any, []any:
		return same(a, b)
	}
	n, ok := number(a)
	m, too := number(b)
	return ok && too && n == m
}

// compared returns the helper that compares two values by order.
func compared(holds func(order int) bool) func(*invoked) any {
	return func(in *invoked) any {
		c, ok := order(in.args[0], in.args[1])
		return ok && holds(c)
	}
}

// order compares two texts by letters, other values as numbers (one may be a text). ok is false if they have
// no order.
func order(a, b any) (c int, ok bool) {
	x, isText := a.(string)
	y, both := b.(string)
	if isText && both {
		return strings.Compare(x, y), true
	}
	n, ok := numeric(a)
	m, too := numeric(b)
	return cmp.Compare(n, m), ok && too && n == n && m == m // NaN has no place in the order
}
