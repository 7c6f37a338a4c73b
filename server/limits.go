package server

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// limits are what the tags of a field allow. Nil and empty mean no limit.
type limits struct {
	minLength, maxLength *int // in characters
	minimum, maximum     *int
	minItems, maxItems   *int
	enum                 []string
	pattern              *regexp.Regexp
}

// limitsOf reads the tags of a field. A tag that can't be read is a programmer's error, found when the routes
// are made.
func limitsOf(f reflect.StructField) limits {
	number := func(tag string) *int {
		text, ok := f.Tag.Lookup(tag)
		if !ok {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			panic("server: tag " + tag + " of field " + f.Name + " is not a whole number")
		}
		return &n
	}
	l := limits{
		minLength: number("minLength"), maxLength: number("maxLength"),
		minimum: number("minimum"), maximum: number("maximum"),
		minItems: number("minItems"), maxItems: number("maxItems"),
	}
	if enum := f.Tag.Get("enum"); enum != "" {
		l.enum = strings.Split(enum, ",")
	}
	if pattern := f.Tag.Get("pattern"); pattern != "" {
		l.pattern = regexp.MustCompile(pattern)
	}
	return l
}

// ofElements are the limits of a list's elements: all but those of the list itself.
func (l limits) ofElements() limits {
	l.minItems, l.maxItems = nil, nil
	return l
}

// ofString returns the limits that a string breaks, in the words of EmailEngine's answers.
func (l limits) ofString(s string) (faults []string) {
	if len(l.enum) > 0 && !slices.Contains(l.enum, s) {
		return []string{"must be one of [" + strings.Join(l.enum, ", ") + "]"}
	}
	if l.minLength != nil && utf8.RuneCountInString(s) < *l.minLength {
		if s == "" {
			return []string{"is not allowed to be empty"}
		}
		faults = append(faults, "length must be at least "+strconv.Itoa(*l.minLength)+" characters long")
	}
	if l.maxLength != nil && len(s) > *l.maxLength && utf8.RuneCountInString(s) > *l.maxLength {
		return append(faults, "length must be less than or equal to "+strconv.Itoa(*l.maxLength)+" characters long")
	}
	if l.pattern != nil && !l.pattern.MatchString(s) {
		faults = append(faults, "fails to match the required pattern: "+l.pattern.String())
	}
	return faults
}

// ofInt returns the limits that a number breaks.
func (l limits) ofInt(n int) (faults []string) { return l.ofNumber(float64(n)) }

// ofNumber returns the limits that a number, whole or not, breaks. No limit is so large that a float64 would
// not hold it exactly.
func (l limits) ofNumber(x float64) (faults []string) {
	if l.minimum != nil && x < float64(*l.minimum) {
		faults = append(faults, "must be greater than or equal to "+strconv.Itoa(*l.minimum))
	}
	if l.maximum != nil && x > float64(*l.maximum) {
		faults = append(faults, "must be less than or equal to "+strconv.Itoa(*l.maximum))
	}
	return faults
}
