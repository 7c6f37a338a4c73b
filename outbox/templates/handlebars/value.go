package handlebars

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
)

// undefined is the value of a missing variable, different from null.
type undefined struct{}

// markup is text that a helper escaped already.
type markup string

// truthy reports whether {{#if}} is true for v: false, null, undefined, 0, "" and the empty list are not.
func truthy(v any) bool {
	if n, ok := number(v); ok && n == 0 {
		return false
	}
	return !empty(v)
}

// empty reports whether v is empty for {{#with}}: as for {{#if}}, but 0 is not empty.
func empty(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case markup:
		return v == ""
	case []any:
		return len(v) == 0
	}
	n, ok := number(v)
	return ok && math.IsNaN(n)
}

// number returns the value of a number of any type that data may have.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	}
	return 0, false
}

// plainText returns a value as JavaScript prints it. Lists are printed with commas; the run counts their
// steps.
func plainText(v any) string {
	switch v := v.(type) {
	case nil, undefined:
		return ""
	case string:
		return v
	case markup:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return numberText(v)
	case json.Number:
		return jsonNumberText(v)
	}
	return "[object Object]"
}

// jsonNumberText keeps whole numbers as written, at any length, because ids are numbers too. Others are
// printed as in JavaScript.
func jsonNumberText(v json.Number) string {
	digits := strings.TrimPrefix(string(v), "-")
	if digits != "" && strings.Trim(digits, "0123456789") == "" && (digits[0] != '0' || digits == "0") &&
		string(v) != "-0" {
		return string(v)
	}
	n, err := v.Float64()
	if err != nil {
		return string(v)
	}
	return numberText(n)
}

// numberText prints a number as JavaScript does.
func numberText(n float64) string {
	switch size := math.Abs(n); {
	case math.IsNaN(n):
		return "NaN"
	case n > math.MaxFloat64:
		return "Infinity"
	case n < -math.MaxFloat64:
		return "-Infinity"
	case n == 0:
		return "0"
	case size >= 1e21 || size < 1e-6:
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(n, 'e', -1, 64), "e")
		return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// property returns a part of a value: a member of an object, an element of a list or a character of a string,
// or their length.
func property(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		if member, ok := v[name]; ok {
			return member
		}
	case []any:
		if name == "length" {
			return len(v)
		}
		if i := index(name); i >= 0 && i < len(v) {
			return v[i]
		}
	case string:
		units := utf16.Encode([]rune(v))
		if name == "length" {
			return len(units)
		}
		if i := index(name); i >= 0 && i < len(units) {
			return string(utf16.Decode(units[i : i+1]))
		}
	}
	return undefined{}
}

// index reads the number of an element as JavaScript writes it; -1 for anything else.
func index(name string) int {
	if name == "" || len(name) > 9 || name[0] == '0' && name != "0" || name[0] == '+' || name[0] == '-' {
		return -1
	}
	if i, err := strconv.Atoi(name); err == nil {
		return i
	}
	return -1
}

// same reports whether two contexts are identical: then entering the second from the first adds no level for
// ../. Objects and lists are compared by address, which needs reflect; scalars as by JavaScript's ==.
func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	case nil, undefined:
		return absent(b)
	case string:
		if y, ok := b.(string); ok {
			return x == y
		}
	}
	n, ok := loose(a)
	m, too := loose(b)
	return ok && too && n == m
}

// loose is the number that JavaScript's == converts a scalar to.
func loose(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		return float64(btoi(v)), true
	case string:
		if strings.TrimSpace(v) == "" {
			return 0, true
		}
	}
	return numeric(v)
}
