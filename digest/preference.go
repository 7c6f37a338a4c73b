package digest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/schedule"
)

// The modes of preferences that aren't cadences.
const (
	immediate = "immediate"
	off       = "off"
)

// Schedules that no preference makes.
const (
	urgentSchedule  = "urgent"  // events of priority urgent, immediately
	nowSchedule     = "now"     // somebody asked for an email now
	addressSchedule = "address" // events of a recipient without an address, which are given up
	recheck         = "recheck" // events that returned, to be planned
)

// rest stands for the categories without their own preference.
const rest = "*"

// cadence is a preference as it is used.
type cadence struct {
	mode string // immediate, off, or a mode of package schedule
	gap  time.Duration
	schedule.Cadence
}

// key names the schedule of a cadence.
func (c cadence) key() string {
	switch c.mode {
	case immediate:
		return immediate + "@" + c.gap.String()
	case off:
		return off
	}
	return c.String()
}

// words returns the cadence as a part of a sentence.
func (c cadence) words() string {
	switch {
	case c.mode == off:
		return "never"
	case c.mode == immediate && c.gap == 0:
		return "at once"
	case c.mode == immediate:
		return "at once, at most every " + strings.TrimSuffix(c.gap.String(), "0s")
	}
	return c.Words()
}

// modes are the modes of preferences.
var modes = []string{immediate, string(schedule.Hourly), string(schedule.Daily), string(schedule.Weekly),
	string(schedule.Monthly), string(schedule.Custom), off}

// mostGap bounds the gap of immediate mail.
const mostGap = 7 * 24 * time.Hour

// cadenceOf reads a preference. The wrong fields begin with at, as preferences.comment.
func (o Options) cadenceOf(p api.DigestPreference, at string) (cadence, []fault.Field) {
	c := cadence{mode: p.Mode, gap: o.Gap}
	var f fault.Fields
	if !slices.Contains(modes, p.Mode) {
		f.Add(at+".mode", "must be %s or "+off, strings.Join(modes[:len(modes)-1], ", "))
		return c, f
	}
	if p.Mode == off {
		return c, nil
	}
	if p.Mode == immediate {
		if p.Gap != "" {
			gap, err := schedule.ParseDuration(p.Gap)
			if err != nil || gap < 0 || gap > mostGap {
				f.Add(at+".gap", "must be a duration from 0s to 168h, such as 5m")
			}
			c.gap = gap
		}
		return c, f
	}
	c.Cadence = schedule.Cadence{Mode: schedule.Mode(p.Mode), Hour: o.Hour, Day: p.Day}
	if p.Hour != nil {
		c.Hour = *p.Hour
	}
	if p.Minute != nil {
		c.Minute = *p.Minute
	}
	if c.Mode == schedule.Weekly {
		c.Weekdays = weekdays(&f, at+".weekdays", p.Weekdays)
	}
	if c.Mode == schedule.Custom {
		c.readCustom(&f, p, at)
	}
	if f == nil {
		for _, wrong := range c.Check() {
			f.Add(at+"."+wrong.Key, "%s", wrong.Message)
		}
	}
	return c, f
}

func (c *cadence) readCustom(f *fault.Fields, p api.DigestPreference, at string) {
	if (p.Cron == "") == (len(p.Times) == 0) {
		f.Add(at+".cron", "or times is required, but not both")
		return
	}
	if p.Cron != "" {
		cron, err := schedule.ParseCron(p.Cron)
		if err != nil {
			f.Add(at+".cron", "%s", err)
		}
		c.Cron = cron
		return
	}
	for i, t := range p.Times {
		day := slices.Index(weekdayNames, t.Weekday)
		if day < 0 {
			f.Add(fmt.Sprintf("%s.times[%d].weekday", at, i), wrongWeekday)
		}
		clock, err := schedule.ParseClock(t.At)
		if err != nil {
			f.Add(fmt.Sprintf("%s.times[%d].at", at, i), "%s", err)
		}
		c.Slots = append(c.Slots, schedule.Slot{Weekday: time.Weekday(max(0, day)), At: clock})
	}
}

// weekdayNames are the days as requests name them, by time.Weekday.
var weekdayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

const wrongWeekday = "must be mon, tue, wed, thu, fri, sat or sun"

func weekdays(f *fault.Fields, at string, names []string) (days [7]bool) {
	for i, name := range names {
		if day := slices.Index(weekdayNames, name); day >= 0 {
			days[day] = true
		} else {
			f.Add(fmt.Sprintf("%s[%d]", at, i), wrongWeekday)
		}
	}
	return days
}

// quietOf reads quiet hours.
func quietOf(list []api.DigestQuiet) (schedule.Quiet, []fault.Field) {
	var quiet schedule.Quiet
	var f fault.Fields
	for i, q := range list {
		w, wrong := schedule.ParseWindow(q.Weekdays, q.From, q.Until)
		for _, one := range wrong {
			key := strings.Replace(one.Key, "days[", "weekdays[", 1)
			f.Add(fmt.Sprintf("quiet[%d].%s", i, key), "%s", one.Message)
		}
		quiet = append(quiet, w)
	}
	if f == nil {
		f = quiet.Check()
	}
	return quiet, f
}

// preference returns what a recipient wants from a category: its preference for the category, for the rest,
// the kind's, or the default. A required kind is not off.
func (o Options) preference(r *recipient, category string, k *api.DigestKind) api.DigestPreference {
	all := []api.DigestPreference{}
	for _, name := range []string{category, rest} {
		if p, ok := r.preferences[name]; ok {
			all = append(all, p)
		}
	}
	if k != nil && k.Preference != nil {
		all = append(all, *k.Preference)
	}
	all = append(all, o.standard())
	for _, p := range all {
		if p.Mode != off || k == nil || !k.Required {
			return p
		}
	}
	return api.DigestPreference{Mode: string(schedule.Daily)}
}

// isOff reports whether a recipient turned a category off. Turning a required kind off has no effect.
func (r *recipient) isOff(category string) bool {
	p, own := r.preferences[category]
	return own && p.Mode == off || !own && r.preferences[rest].Mode == off
}

// standard is the preference of recipients without one.
func (o Options) standard() api.DigestPreference {
	return api.DigestPreference{Mode: cmp.Or(o.Mode, string(schedule.Daily))}
}

// wanted is preference as it is used. An unusable one, as after a change of settings, is daily.
func (o Options) wanted(r *recipient, category string, k *api.DigestKind) cadence {
	c, wrong := o.cadenceOf(o.preference(r, category, k), "")
	if wrong != nil {
		c = cadence{mode: string(schedule.Daily), Cadence: schedule.Cadence{Mode: schedule.Daily, Hour: o.Hour}}
	}
	return c
}
