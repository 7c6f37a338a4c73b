package handlebars

import (
	"fmt"
	"slices"

	"github.com/postroom/postroom/outbox/templates/locale"
)

// helper is one of the fixed functions that templates may call.
type helper struct {
	name     string
	kind     blockKind // printing, or the effect of its block
	negated  bool      // the branches of its block are swapped
	reserved bool      // the name means the helper even without arguments
	needs    bool      // a missing argument is reported
	least    int       // arguments
	most     int       // -1: any number
	hash     []string  // names of named arguments
	anyHash  bool      // any names do
	call     func(*invoked) any
}

// invoked is one call of a helper with its arguments.
type invoked struct {
	run  *run
	call *call
	args []any
	hash []any  // in the order of call.hash
	room [4]any // for args, mostly
}

// named returns a named argument; undefined if it wasn't given.
func (in *invoked) named(name string) any {
	for i, p := range in.call.hash {
		if p.name == name {
			return in.hash[i]
		}
	}
	return undefined{}
}

// namedText returns a named argument as text, or the default.
func (in *invoked) namedText(name, otherwise string) string {
	if v := in.named(name); !absent(v) {
		return plainText(v)
	}
	return otherwise
}

// text returns an argument as it would be printed.
func (in *invoked) text(i int) string { return in.run.textOf(in.args[i], in.call.offset) }

// first returns the first argument for which is returns true, else the last.
func (in *invoked) first(is func(any) bool) any {
	if i := slices.IndexFunc(in.args, is); i >= 0 {
		return in.args[i]
	}
	return in.args[len(in.args)-1]
}

// words returns the locale: the argument locale=, or the execution's.
func (in *invoked) words() locale.Locale {
	if tag := in.namedText("locale", ""); tag != "" {
		return locale.Find(tag)
	}
	return in.run.words
}

// fault returns the error for unusable arguments.
func (in *invoked) fault(format string, args ...any) *Error {
	return in.run.src.errorAt(in.call.offset, nil, "%s: %s", in.call.helper.name, fmt.Sprintf(format, args...))
}

// absent reports whether a value is null or undefined.
func absent(v any) bool {
	_, gone := v.(undefined)
	return v == nil || gone
}

// argumentCount describes the number of arguments of a helper.
func argumentCount(least, most int) string {
	switch {
	case most < 0:
		return fmt.Sprintf("%d arguments or more", least)
	case least == most && most == 1:
		return "1 argument"
	case least == most:
		return fmt.Sprintf("%d arguments", least)
	}
	return fmt.Sprintf("%d to %d arguments", least, most)
}

// helpers are all helpers by name. A test compares them with docs/templates.md.
var helpers = byName(
	// Handlebars' own helpers.
	&helper{name: "if", kind: condition, reserved: true, least: 1, most: 1, hash: []string{"includeZero"},
		call: isTrue},
	&helper{name: "unless", kind: condition, negated: true, reserved: true, least: 1, most: 1,
		hash: []string{"includeZero"}, call: isTrue},
	&helper{name: "each", kind: each, reserved: true, least: 1, most: 1},
	&helper{name: "with", kind: with, reserved: true, least: 1, most: 1},
	&helper{name: "lookup", least: 2, most: 2, call: lookUp},
	&helper{name: "log", least: 0, most: -1, anyHash: true, call: logNothing},
	&helper{name: "raw", kind: verbatim, reserved: true},

	// Conditions, as blocks and inside parentheses.
	&helper{name: "and", kind: condition, least: 1, most: -1, call: and},
	&helper{name: "or", kind: condition, least: 1, most: -1, call: or},
	&helper{name: "not", kind: condition, least: 1, most: 1, call: not},
	&helper{name: "equals", kind: condition, least: 2, most: 2, call: equals},
	&helper{name: "eq", kind: condition, least: 2, most: 2, call: equals},
	&helper{name: "notEquals", kind: condition, least: 2, most: 2, call: differs},
	&helper{name: "ne", kind: condition, least: 2, most: 2, call: differs},
	&helper{name: "greaterThan", kind: condition, least: 2, most: 2,
		call: compared(func(c int) bool { return c > 0 })},
	&helper{name: "gt", kind: condition, least: 2, most: 2, call: compared(func(c int) bool { return c > 0 })},
	&helper{name: "gte", kind: condition, least: 2, most: 2, call: compared(func(c int) bool { return c >= 0 })},
	&helper{name: "lessThan", kind: condition, least: 2, most: 2,
		call: compared(func(c int) bool { return c < 0 })},
	&helper{name: "lt", kind: condition, least: 2, most: 2, call: compared(func(c int) bool { return c < 0 })},
	&helper{name: "lte", kind: condition, least: 2, most: 2, call: compared(func(c int) bool { return c <= 0 })},

	// Text.
	&helper{name: "default", least: 2, most: -1, call: firstPresent},
	&helper{name: "insert", least: 1, most: 2, hash: []string{"default"}, call: insert},
	&helper{name: "length", needs: true, least: 1, most: 1, call: length},
	&helper{name: "truncate", needs: true, least: 2, most: 3, call: truncate},
	&helper{name: "upper", needs: true, least: 1, most: 1, call: upper},
	&helper{name: "lower", needs: true, least: 1, most: 1, call: lower},
	&helper{name: "json", needs: true, least: 1, most: 1, call: asJSON},

	// Addresses.
	&helper{name: "url", needs: true, least: 1, most: 1, anyHash: true, call: address},
	&helper{name: "urlencode", needs: true, least: 1, most: 1, call: urlEncode},
	&helper{name: "link", needs: true, least: 1, most: 2, hash: []string{"class", "style", "target", "title"},
		call: link},

	// Numbers and dates.
	&helper{name: "number", needs: true, least: 1, most: 1, hash: []string{"decimals", "locale"},
		call: formatNumber},
	&helper{name: "currency", needs: true, least: 2, most: 2, hash: []string{"locale"}, call: formatCurrency},
	&helper{name: "plural", needs: true, least: 3, most: 3, hash: []string{"zero", "two", "few", "many",
		"locale"}, call: pluralForm},
	&helper{name: "date", needs: true, least: 1, most: 2, hash: []string{"tz", "locale"}, call: formatDate},
	&helper{name: "formatDate", needs: true, least: 2, most: 3, hash: []string{"tz", "locale"},
		call: formatDate},
)

func byName(all ...*helper) map[string]*helper {
	named := make(map[string]*helper, len(all))
	for _, h := range all {
		named[h.name] = h
	}
	return named
}
