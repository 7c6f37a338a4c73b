package config

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parse reads text into the field at p. It gives back what is wrong with the text and what to write instead, or "".
func (k Key) parse(text string, p any) (fault string) {
	if text == "" {
		if k.Empty == "" {
			return "must have a value; " + k.want()
		}
		return "" // the zero value says the same
	}
	if k.Values != nil && !slices.Contains(k.Values, text) {
		return "is not one of the choices; " + k.want()
	}
	switch p := p.(type) {
	case *string:
		*p, fault = checked(k.check, text)
	case *Secret:
		text, fault = checked(k.check, text)
		*p = Secret(text)
	case *bool:
		fault = parseInto(p, text, "is neither true nor false", k, strconv.ParseBool)
	case *int:
		fault = parseInto(p, text, "is not a whole number", k, strconv.Atoi)
	case *float64:
		fault = parseInto(p, text, "is not a number", k, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	case *time.Duration:
		fault = parseInto(p, text, "is not a duration", k, time.ParseDuration)
	case *Size:
		fault = parseInto(p, text, "is not a size", k, parseSize)
	case *[]time.Duration:
		*p, fault = k.parseList(text)
	case *slog.Level:
		*p, fault = parseLevel(text)
	case *Relay:
		*p, fault = parseRelay(text)
	case *Mailbox:
		*p, fault = parseMailbox(text)
	}
	return fault
}

// parseInto reads one value and holds it against the limits of its key.
func parseInto[T any](p *T, text, wrong string, k Key, read func(string) (T, error)) (fault string) {
	v, err := read(text)
	if err != nil {
		return wrong + "; " + k.want()
	}
	*p = v
	if !k.within(v) {
		return "is out of range; " + k.want()
	}
	return ""
}

// within holds a value against min and max, which the tests read with the same parser as the value.
func (k Key) within(v any) bool {
	low, high := true, true
	switch v := v.(type) {
	case int:
		low, high = between(v, k, strconv.Atoi)
	case float64: // written so that NaN is outside
		low, high = between(v, k, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	case time.Duration:
		low, high = between(v, k, time.ParseDuration)
	case Size:
		low, high = between(v, k, parseSize)
	}
	return low && high
}

func between[T int | float64 | time.Duration | Size](v T, k Key, read func(string) (T, error)) (low, high bool) {
	low, high = true, true
	if k.Min != "" {
		limit, err := read(k.Min)
		low = err == nil && v >= limit
	}
	if k.Max != "" {
		limit, err := read(k.Max)
		high = err == nil && v <= limit
	}
	return low, high
}

// maxList bounds a list, as the API does.
const maxList = 100

func (k Key) parseList(text string) (out []time.Duration, fault string) {
	items := strings.Split(text, ",")
	if len(items) > maxList {
		return nil, fmt.Sprintf("has %d entries; write %d at most", len(items), maxList)
	}
	for _, item := range items {
		var d time.Duration
		if fault := parseInto(&d, strings.TrimSpace(item), "holds something that is not a duration", k, time.ParseDuration); fault != "" {
			return nil, fault
		}
		out = append(out, d)
	}
	return out, ""
}

func parseLevel(text string) (l slog.Level, fault string) {
	if err := l.UnmarshalText([]byte(text)); err != nil {
		return l, "is not a log level"
	}
	return l, ""
}

// want says what to write, with an example where the form isn't obvious.
func (k Key) want() string {
	if k.Values != nil {
		return "write " + join(k.Values)
	}
	form := k.Kind
	switch form {
	case "duration":
		form = "a duration with its unit, such as 5s, 30m or 168h"
	case "list of durations":
		form = "durations with their units, such as 1m, 5m, 2h"
	case "size":
		form = "a size such as 25MB, 10MiB or plain bytes"
	case "whole number", "number", "path":
		form = "a " + form
	}
	switch {
	case k.Min != "" && k.Max != "":
		return "write " + form + ", from " + k.Min + " to " + k.Max
	case k.Min != "":
		return "write " + form + ", " + k.Min + " or more"
	}
	return "write " + form
}

func join(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
