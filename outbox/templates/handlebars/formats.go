package handlebars

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/schedule"
)

// numeric converts a number, or a text that is a number.
func numeric(v any) (float64, bool) {
	if n, ok := number(v); ok {
		return n, true
	}
	if text, ok := v.(string); ok && len(text) < 100 {
		n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		return n, err == nil
	}
	return 0, false
}

// amount returns the first argument as a number. present is false for an absent value.
func (in *invoked) amount() (n float64, present bool) {
	if blank(in.args[0]) {
		return 0, false
	}
	n, ok := numeric(in.args[0])
	if !ok {
		panic(in.fault("%q is not a number", brief(in.args[0])))
	}
	return n, true
}

// brief returns a value for an error message.
func brief(v any) string { return shorten(plainText(v), 40, "…") }

func formatNumber(in *invoked) any {
	n, present := in.amount()
	if !present {
		return ""
	}
	least, most := 0, 3
	if v := in.named("decimals"); !absent(v) {
		places, ok := numeric(v)
		if !ok || places < 0 || places > 20 {
			panic(in.fault("decimals=%s is not a number from 0 to 20", brief(v)))
		}
		least, most = int(places), int(places)
	}
	return in.words().Number(n, least, most)
}

func formatCurrency(in *invoked) any {
	n, present := in.amount()
	if !present {
		return ""
	}
	code := plainText(in.args[1])
	if len(code) != 3 {
		panic(in.fault("%q is not the code of a currency, such as EUR", brief(in.args[1])))
	}
	return in.words().Currency(n, code)
}

// pluralForm returns the plural form for a number: {{plural count "item" "items"}}. Languages with more forms
// name them.
func pluralForm(in *invoked) any {
	n, present := in.amount()
	if !present {
		return ""
	}
	switch form := in.words().Plural(n); form {
	case "one":
		return in.args[1]
	case "other":
		return in.args[2]
	default:
		return in.namedText(form, plainText(in.args[2]))
	}
}

// formatDate formats a time with a style or a pattern.
func formatDate(in *invoked) any {
	if blank(in.args[0]) {
		return ""
	}
	zone := in.zone()
	at, ok := readTime(in.args[0], zone)
	if !ok {
		panic(in.fault("%q is not a date", brief(in.args[0])))
	}
	style := "medium"
	if len(in.args) > 1 && !absent(in.args[1]) {
		style = plainText(in.args[1])
	}
	if len(style) > 200 {
		panic(in.fault("the pattern is longer than 200 characters"))
	}
	return in.words().Date(at.In(zone), style)
}

// zone returns the time zone: the argument, the execution's, or UTC.
func (in *invoked) zone() *time.Location {
	name := in.namedText("tz", "")
	if len(in.args) == 3 {
		name = plainText(in.args[2])
	}
	if name == "" {
		return cmp.Or(in.run.input.Zone, time.UTC)
	}
	zone := findZone(name)
	if zone == nil {
		panic(in.fault("there is no time zone %q", brief(name)))
	}
	in.run.spend(50, in.call.offset) // it may be loaded and parsed each time
	return zone
}

// findZone reads a zone: "Europe/Berlin", or an offset such as "-0800" or "+05:30".
func findZone(name string) *time.Location {
	if t, err := time.Parse("-0700", strings.Replace(name, ":", "", 1)); err == nil {
		_, offset := t.Zone()
		return time.FixedZone(name, offset)
	}
	if len(name) > 40 {
		return nil
	}
	zone, _ := schedule.Zone(name)
	return zone
}

// layouts are the accepted date formats. A date without a zone is in the execution's.
var layouts = [...]string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02", time.RFC1123Z, time.RFC1123,
}

// readTime parses a date or a number: Unix seconds, or milliseconds if it is too large for seconds.
func readTime(v any, zone *time.Location) (time.Time, bool) {
	if n, ok := number(v); ok {
		if math.IsNaN(n) || math.Abs(n) > 8.64e15 { // the range of JavaScript dates
			return time.Time{}, false
		}
		if math.Abs(n) < 1e11 {
			n *= 1000
		}
		return time.UnixMilli(int64(n)), true
	}
	text, ok := v.(string)
	if !ok || len(text) > 64 {
		return time.Time{}, false
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
