package server

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// bounds are the bounds of a field, from its tags. Nil and empty mean no bound.
type bounds struct {
	minLength, maxLength *int // in characters
	minimum, maximum     *int
	minItems, maxItems   *int
	enum                 []string
	pattern              *regexp.Regexp
}

// boundsOf reads the tags of a field. A wrong tag is a programmer's error: it panics when the routes are
// made.
func boundsOf(f reflect.StructField) bounds {
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
	b := bounds{
		minLength: number("minLength"), maxLength: number("maxLength"),
		minimum: number("minimum"), maximum: number("maximum"),
		minItems: number("minItems"), maxItems: number("maxItems"),
	}
	if enum := f.Tag.Get("enum"); enum != "" {
		b.enum = strings.Split(enum, ",")
	}
	if pattern := f.Tag.Get("pattern"); pattern != "" {
		b.pattern = regexp.MustCompile(pattern)
	}
	return b
}

func (b bounds) ofElements() bounds {
	b.minItems, b.maxItems = nil, nil
	return b
}

// ofString returns a string's errors, worded as by EmailEngine.
func (b bounds) ofString(s string) (faults []string) {
	if len(b.enum) > 0 && !slices.Contains(b.enum, s) {
		return []string{"must be one of [" + strings.Join(b.enum, ", ") + "]"}
	}
	if b.minLength != nil && utf8.RuneCountInString(s) < *b.minLength {
		if s == "" {
			return []string{"is not allowed to be empty"}
		}
		faults = append(faults, "length must be at least "+strconv.Itoa(*b.minLength)+" characters long")
	}
	if b.maxLength != nil && len(s) > *b.maxLength && utf8.RuneCountInString(s) > *b.maxLength {
		return append(faults, "length must be less than or equal to "+strconv.Itoa(*b.maxLength)+" characters long")
	}
	if b.pattern != nil && !b.pattern.MatchString(s) {
		faults = append(faults, "fails to match the required pattern: "+b.pattern.String())
	}
	return faults
}

// ofNumber returns a number's errors. A float64 holds all bounds exactly.
func (b bounds) ofNumber(x float64) (faults []string) {
	if b.minimum != nil && x < float64(*b.minimum) {
		faults = append(faults, "must be greater than or equal to "+strconv.Itoa(*b.minimum))
	}
	if b.maximum != nil && x > float64(*b.maximum) {
		faults = append(faults, "must be less than or equal to "+strconv.Itoa(*b.maximum))
	}
	return faults
}
