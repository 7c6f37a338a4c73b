package ui

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// weekdays are the days of the week as forms and requests name them.
var weekdays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// digestModes are the choices of a cadence.
var digestModes = []string{"immediate", "hourly", "daily", "weekly", "monthly", "custom", "off"}

// cadenceView is the fields of one preference. Their names begin with Prefix.
type cadenceView struct {
	Form   formValues
	Prefix string
	Label  string // label of the mode
	None   string // text of the choice without a mode
}

// Get returns the value of a field.
func (v cadenceView) Get(field string) string { return v.Form.Get(v.Prefix + field) }

// On reports whether a day of the week was chosen.
func (v cadenceView) On(day string) bool { return v.Form.Is(v.Prefix+"weekdays", day) }

func (cadenceView) Modes() []string { return digestModes }

func (cadenceView) Days() []string { return weekdays }

// formValues are the values of a form. After a refusal they are the values that were typed.
type formValues struct{ url.Values }

// Is reports whether a field has a value, of perhaps several.
func (v formValues) Is(field, value string) bool {
	return slices.Contains(v.Values[field], value)
}

// setCadence writes a preference into the fields of a form. nil writes nothing.
func setCadence(f url.Values, prefix string, p *api.DigestPreference) {
	if p == nil {
		return
	}
	set := func(field, value string) { f.Set(prefix+field, value) }
	set("mode", p.Mode)
	set("gap", p.Gap)
	set("cron", p.Cron)
	f[prefix+"weekdays"] = p.Weekdays
	if p.Day > 0 {
		set("day", strconv.Itoa(p.Day))
	}
	minute := 0
	api.Set(&minute, p.Minute)
	switch {
	case p.Mode == "hourly":
		set("minute", strconv.Itoa(minute))
	case p.Hour != nil:
		set("at", fmt.Sprintf("%02d:%02d", *p.Hour, minute))
	case p.Minute != nil:
		set("at", fmt.Sprintf(":%02d", minute))
	}
	var times []string
	for _, t := range p.Times {
		times = append(times, t.Weekday+" "+t.At)
	}
	set("times", strings.Join(times, ", "))
}

var (
	clockForm = regexp.MustCompile(`^(\d{1,2})?:(\d{2})$`)
	slotForm  = regexp.MustCompile(`^([a-z]{3}) +(\d{1,2}:\d{2})$`)
	quietForm = regexp.MustCompile(`^(?:([a-z, ]+) )?(\d{1,2}:\d{2})-(\d{1,2}:\d{2})$`)
)

// cadenceReader reads preferences from a form, and collects the fields that it can't read.
type cadenceReader struct {
	form  url.Values
	wrong fault.Fields
}

// read returns the preference whose fields begin with prefix; nil: it has no mode. Only fields that the mode
// needs are read. at begins the names of wrong fields.
func (c *cadenceReader) read(prefix, at string) *api.DigestPreference {
	text := func(field string) string { return strings.TrimSpace(c.form.Get(prefix + field)) }
	p := &api.DigestPreference{Mode: text("mode")}
	switch p.Mode {
	case "":
		return nil
	case "immediate":
		p.Gap = text("gap")
	case "hourly":
		p.Minute = c.number(text("minute"), at+".minute")
	case "daily":
		c.clock(p, text("at"), at+".at")
	case "weekly":
		p.Weekdays = c.form[prefix+"weekdays"]
		c.clock(p, text("at"), at+".at")
	case "monthly":
		if day := c.number(cmp.Or(text("day"), "1"), at+".day"); day != nil {
			if p.Day = *day; p.Day == 0 {
				c.wrong.Add(at+".day", "must be a day from 1 to 31")
			}
		}
		c.clock(p, text("at"), at+".at")
	case "custom":
		p.Cron = text("cron")
		p.Times = c.times(text("times"), at+".times")
	}
	return p
}

func (c *cadenceReader) number(text, at string) *int {
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		c.wrong.Add(at, "must be a number")
		return nil
	}
	return &n
}

// clock reads a time of day. If it is empty, the settings decide.
func (c *cadenceReader) clock(p *api.DigestPreference, text, at string) {
	if text == "" {
		return
	}
	found := clockForm.FindStringSubmatch(text)
	if found == nil {
		c.wrong.Add(at, "must be a time such as 08:30")
		return
	}
	minute, _ := strconv.Atoi(found[2]) // digits
	p.Minute = &minute
	if found[1] != "" {
		hour, _ := strconv.Atoi(found[1]) // digits
		p.Hour = &hour
	}
}

func (c *cadenceReader) times(text, at string) (times []api.DigestWeekTime) {
	if text == "" {
		return nil
	}
	for slot := range strings.SplitSeq(text, ",") {
		found := slotForm.FindStringSubmatch(strings.TrimSpace(slot))
		if found == nil {
			c.wrong.Add(at, "must be times of the week such as: mon 08:30, fri 16:00")
			return nil
		}
		times = append(times, api.DigestWeekTime{Weekday: found[1], At: found[2]})
	}
	return times
}

// quiet reads quiet hours, one a line.
func (c *cadenceReader) quiet(text string) []api.DigestQuiet {
	list := []api.DigestQuiet{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		found := quietForm.FindStringSubmatch(line)
		if found == nil {
			c.wrong.Add("quiet", "must have lines such as 22:00-07:00 or fri,sat 22:00-09:00")
			return nil
		}
		list = append(list, api.DigestQuiet{Weekdays: listed(found[1]), From: found[2], Until: found[3]})
	}
	return list
}

// quietText returns quiet hours as a form has them, one a line.
func quietText(list []api.DigestQuiet) string {
	var lines []string
	for _, q := range list {
		lines = append(lines, strings.TrimSpace(strings.Join(q.Weekdays, ",")+" "+q.From+"-"+q.Until))
	}
	return strings.Join(lines, "\n")
}
