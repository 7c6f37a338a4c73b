package handlebars

import (
	"cmp"
	"strings"
)

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
