package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// Mode is how a cadence repeats.
type Mode string

// The modes.
const (
	Hourly  Mode = "hourly"
	Daily   Mode = "daily"
	Weekly  Mode = "weekly"
	Monthly Mode = "monthly"
	Custom  Mode = "custom"
)

// Cadence is when something repeats by wall clocks. Only the fields that its mode needs are read.
type Cadence struct {
	Mode     Mode
	Hour     int     // daily, weekly, monthly: 0 to 23
	Minute   int     // hourly, daily, weekly, monthly: 0 to 59
	Weekdays [7]bool // weekly, by time.Weekday; defaults to Monday
	Day      int     // monthly: 1 to 31 (default 1); a month that lacks the day has its last
	Slots    []Slot  // custom: times of the week; if empty, see Cron
	Cron     Cron    // custom without Slots; zero if none
}

// Slot is a time of the week.
type Slot struct {
	Weekday time.Weekday
	At      Clock
}

// leastApart is the shortest time between two periods of a custom cadence, in minutes.
const leastApart = 15

// minute returns the minute of the week, which begins on Sunday.
func (s Slot) minute() int64 { return int64(s.Weekday)*perDay + int64(s.At) }

// String returns the slot as a person writes it: Monday 08:30.
func (s Slot) String() string { return s.Weekday.String() + " " + s.At.String() }

// Check returns the wrong fields: mode, hour, minute, day, times, times[2].weekday, times[2].at, cron.
func (c Cadence) Check() []fault.Field {
	wrong := c.checkFields()
	if c.Mode != Custom || len(wrong) > 0 {
		return wrong
	}
	if len(c.Slots) > 0 {
		return c.checkApart()
	}
	return c.Cron.check()
}

// checkFields returns the fields that have impossible values. Next needs no more than that they are right.
func (c Cadence) checkFields() (wrong fault.Fields) {
	within := func(key string, value, least, most int) {
		if value < least || value > most {
			wrong.Add(key, "must be %d to %d", least, most)
		}
	}
	switch c.Mode {
	case Hourly:
		within("minute", c.Minute, 0, 59)
	case Daily, Weekly, Monthly:
		within("hour", c.Hour, 0, 23)
		within("minute", c.Minute, 0, 59)
		if c.Mode == Monthly && c.Day != 0 {
			within("day", c.Day, 1, 31)
		}
	case Custom:
		for i, s := range c.Slots {
			if s.Weekday < time.Sunday || s.Weekday > time.Saturday {
				wrong.Add(fmt.Sprintf("times[%d].weekday", i), "must be 0 (Sunday) to 6")
			}
			if !s.At.valid() {
				wrong.Add(fmt.Sprintf("times[%d].at", i), "%s", errClock)
			}
		}
		if len(c.Slots) == 0 && c.Cron.IsZero() {
			wrong.Add("times", "must have at least one time, unless cron is set")
		}
	default:
		wrong.Add("mode", "must be hourly, daily, weekly, monthly or custom")
	}
	return wrong
}

// checkApart returns the slots that come too soon after another one.
func (c Cadence) checkApart() (wrong fault.Fields) {
	order := make([]int, len(c.Slots))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(c.Slots[a].minute() - c.Slots[b].minute()) })
	for n, i := range order {
		before := order[(n+len(order)-1)%len(order)]
		apart := c.Slots[i].minute() - c.Slots[before].minute()
		if n == 0 {
			apart += perWeek
		}
		if apart < leastApart {
			wrong.Add(fmt.Sprintf("times[%d].at", i), "%s must be at least %d minutes after %s of times[%d]",
				c.Slots[i], leastApart, c.Slots[before], before)
		}
	}
	return wrong
}

func (c Cadence) days() [7]bool {
	if c.Weekdays == [7]bool{} {
		return [7]bool{time.Monday: true}
	}
	return c.Weekdays
}

func (c Cadence) day() int { return max(c.Day, 1) }
