package server

import (
	"cmp"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/schedule"
)

// The fields of the digest form. All but the zone are followed by a dot and a category.
const (
	digestMode    = "mode"
	digestHour    = "hour"
	digestMinute  = "minute"
	digestWeekday = "weekday"
	digestDay     = "day"
	digestZone    = "tz"
	digestReader  = "recipient"
)

// digestModes are the modes that readers choose from, in the order of the page. One that is custom stays.
var digestModes = []string{"immediate", "hourly", "daily", "weekly", "monthly", "off"}

// digestDays are the days of the week as forms name them.
var digestDays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// digestNumbers are the number fields, with their bounds and the key of their error.
var digestNumbers = map[string]struct {
	least, most int
	wrong       string
}{digestHour: {0, 23, "wrongHour"}, digestMinute: {0, 59, "wrongMinute"}, digestDay: {1, 31, "wrongDay"}}

// digestForm is a reader's form: only the fields in it change something.
type digestForm struct {
	recipient  string // empty means all of the address
	tz         *string
	categories map[string]map[string][]string // values by category and field
}

// readDigestForm returns the form of digests in a body; ok is false if there is none.
func readDigestForm(values url.Values) (f digestForm, ok bool) {
	f = digestForm{recipient: values.Get(digestReader), categories: map[string]map[string][]string{}}
	if values.Has(digestZone) {
		zone := strings.TrimSpace(values.Get(digestZone))
		f.tz = &zone
	}
	for name, sent := range values {
		field, category, _ := strings.Cut(name, ".")
		switch field {
		case digestMode, digestHour, digestMinute, digestWeekday, digestDay:
		default:
			continue
		}
		if category == "" {
			continue
		}
		if f.categories[category] == nil {
			f.categories[category] = map[string][]string{}
		}
		f.categories[category][field] = sent
	}
	return f, f.tz != nil || len(f.categories) > 0
}

type wrongField struct {
	name string // the field's, as mode.comment; if empty, text names it
	word string // key of the text that says what it may be; empty if text does
	text string
}

// apply returns the reader after a form, and the form's changes. A wrong field is left as it is.
func (f digestForm) apply(r digest.Reader) (digest.Reader, api.DigestRecipientRequest, []wrongField) {
	var wrong []wrongField
	req := api.DigestRecipientRequest{Preferences: map[string]*api.DigestPreference{}}
	if f.tz != nil {
		zone := *f.tz
		zone = cmp.Or(zone, "UTC")
		if _, err := schedule.Zone(zone); err != nil {
			wrong = append(wrong, wrongField{name: digestZone, word: "wrongZone"})
		} else if zone != r.TZ {
			req.TZ = &zone
		}
		r.TZ = zone // as it was typed
	}
	others := r.Choices[len(r.Choices)-1]
	r.Choices = slices.Clone(r.Choices)
	for _, category := range slices.Sorted(maps.Keys(f.categories)) {
		i := slices.IndexFunc(r.Choices, func(c digest.Choice) bool { return c.Category == category })
		if i < 0 { // a category that is new to the reader has what the others have
			i = len(r.Choices) - 1
			one := others
			one.Category, one.Title = category, digest.Readable(category)
			r.Choices = slices.Insert(r.Choices, i, one)
		}
		before := needed(r.Choices[i].Preference)
		wrong = append(wrong, chosen(&r.Choices[i], f.categories[category])...)
		after := needed(r.Choices[i].Preference)
		if !reflect.DeepEqual(before, after) {
			req.Preferences[category] = &after
		}
	}
	if req.Preferences[others.Category] == nil {
		return r, req, wrong
	}
	for _, c := range r.Choices { // choices that were sent unchanged must not follow the change of all others
		if p := needed(c.Preference); f.categories[c.Category] != nil {
			req.Preferences[c.Category] = &p
		}
	}
	return r, req, wrong
}

// chosen changes a choice by the fields that were sent for its category.
func chosen(c *digest.Choice, sent map[string][]string) (wrong []wrongField) {
	refuse := func(field, word string) {
		wrong = append(wrong, wrongField{name: field + "." + c.Category, word: word})
	}
	p := &c.Preference
	if modes := sent[digestMode]; modes != nil {
		switch mode := modes[len(modes)-1]; {
		case mode == "off" && c.Required:
			refuse(digestMode, "wrongRequired")
		case mode != p.Mode && !slices.Contains(digestModes, mode):
			refuse(digestMode, "wrongMode")
		default:
			p.Mode = mode
		}
	}
	for _, field := range []string{digestHour, digestMinute, digestDay} {
		values, bounds := sent[field], digestNumbers[field]
		if values == nil {
			continue
		}
		n, err := strconv.Atoi(values[len(values)-1])
		if err != nil || n < bounds.least || n > bounds.most {
			refuse(field, bounds.wrong)
			continue
		}
		switch field {
		case digestHour:
			p.Hour = &n
		case digestMinute:
			p.Minute = &n
		default:
			p.Day = n
		}
	}
	if values := sent[digestWeekday]; values != nil { // one is empty, so that a form without days has the field
		days := slices.DeleteFunc(strings.Split(strings.Join(values, ","), ","),
			func(day string) bool { return day == "" })
		switch {
		case slices.ContainsFunc(days, func(day string) bool { return !slices.Contains(digestDays, day) }):
			refuse(digestWeekday, "wrongWeekday")
		case len(days) > 0 || p.Mode == "weekly":
			p.Weekdays = slices.DeleteFunc(slices.Clone(digestDays),
				func(day string) bool { return !slices.Contains(days, day) })
		}
		if len(days) == 0 && p.Mode == "weekly" {
			refuse(digestWeekday, "noWeekday")
		}
	}
	return wrong
}

// needed returns a preference without the fields that its mode has no use for.
func needed(p api.DigestPreference) api.DigestPreference {
	n := api.DigestPreference{Mode: p.Mode}
	switch p.Mode {
	case "immediate":
		n.Gap = p.Gap
	case "hourly":
		n.Minute = p.Minute
	case "custom":
		n.Cron, n.Times = p.Cron, p.Times
	case "daily", "weekly", "monthly":
		n.Hour, n.Minute = p.Hour, p.Minute
	}
	switch p.Mode {
	case "weekly":
		n.Weekdays = slices.DeleteFunc(slices.Clone(digestDays),
			func(day string) bool { return !slices.Contains(p.Weekdays, day) })
	case "monthly":
		n.Day = p.Day
	}
	return n
}
