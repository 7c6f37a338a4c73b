package handlebars

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
)

// undefined is the value of what isn't there, as opposed to null.
type undefined struct{}

// markup is text that a helper made for where it goes; it isn't escaped again.
type markup string

// truthy returns which way {{#if}} goes: false, null, undefined, 0, "" and the empty list are false.
func truthy(v any) bool {
	if n, ok := number(v); ok && n == 0 {
		return false
	}
	return !empty(v)
}

// empty is what {{#with}} finds empty: as false, but for 0.
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

// number returns the value of a number of any of the types that data may have.
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

// plainText is a value as JavaScript prints it. Lists are printed with commas, as there; that takes steps, which the run counts.
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

// jsonNumberText keeps whole numbers as they were written, however long: ids are numbers too. Others are printed as JavaScript does.
func jsonNumberText(v json.Number) string {
	digits := strings.TrimPrefix(string(v), "-")
	if digits != "" && strings.Trim(digits, "0123456789") == "" && (digits[0] != '0' || digits == "0") && string(v) != "-0" {
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

// property returns a part of a value: a member of an object, an element of a list or a character of a string, or their length.
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

// same reports whether two contexts are one: then entering the second from the first is no step, and ../ passes both at once. Objects and
// lists are compared by identity, for which there is no other way than to ask reflect where they are; scalars as == of JavaScript does.
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

// loose is the number that == of JavaScript takes a scalar for.
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
