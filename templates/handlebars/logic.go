package handlebars

import (
	"strings"
)

// isTrue is the condition of if and unless with the named argument includeZero=true, which makes 0 true.
func isTrue(in *invoked) (any, error) {
	if n, ok := number(in.args[0]); ok && n == 0 && truthy(in.named("includeZero")) {
		return true, nil
	}
	return truthy(in.args[0]), nil
}

// lookUp returns a member with a computed name.
func lookUp(in *invoked) (any, error) {
	if v := in.args[0]; !truthy(v) {
		if _, isList := v.([]any); !isList {
			return v, nil // 0 and "" too, as in Handlebars
		}
	}
	return property(in.args[0], keyText(in.args[1])), in.run.spend(size(in.args[0])/64, in.call.offset)
}

// logNothing prints and logs nothing: a template must not write to the log.
func logNothing(*invoked) (any, error) { return "", nil }

// and returns the first false argument, else the last.
func and(in *invoked) (any, error) {
	for _, v := range in.args {
		if !truthy(v) {
			return v, nil
		}
	}
	return in.args[len(in.args)-1], nil
}

// or returns the first true argument, else the last.
func or(in *invoked) (any, error) {
	for _, v := range in.args {
		if truthy(v) {
			return v, nil
		}
	}
	return in.args[len(in.args)-1], nil
}

func not(in *invoked) (any, error) { return !truthy(in.args[0]), nil }

func equals(in *invoked) (any, error) { return equal(in.args[0], in.args[1]), nil }

func differs(in *invoked) (any, error) { return !equal(in.args[0], in.args[1]), nil }

// equal compares like ===: a number never equals a text. Undefined equals null.
func equal(a, b any) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case nil, undefined, map[string]any, []any:
		return same(a, b)
	}
	n, ok := number(a)
	m, too := number(b)
	return ok && too && n == m
}

// compared returns the helper that compares two values by order.
func compared(holds func(order int) bool) func(*invoked) (any, error) {
	return func(in *invoked) (any, error) {
		c, ok := order(in.args[0], in.args[1])
		return ok && holds(c), nil
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
	switch {
	case !ok || !too || n != n || m != m: // NaN has no place in the order
		return 0, false
	case n < m:
		return -1, true
	case n > m:
		return 1, true
	}
	return 0, true
}
