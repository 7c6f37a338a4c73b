package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// String returns the cadence as a key: hourly@15, daily@08:00, weekly@mon,thu@08:00, monthly@31@08:00,
// custom@mon@08:30,fri@17:00 or custom@0 8 * * 1-5. Equal cadences have equal keys.
func (c Cadence) String() string {
	at, key := c.clock().String(), string(c.Mode)+"@"
	switch c.Mode {
	case Hourly:
		return fmt.Sprintf("%s%02d", key, c.Minute)
	case Daily:
		return key + at
	case Weekly:
		var names []string
		for _, day := range c.weekdays() {
			names = append(names, dayNames[day])
		}
		return key + strings.Join(names, ",") + "@" + at
	case Monthly:
		return fmt.Sprintf("%s%d@%s", key, c.day(), at)
	}
	if len(c.Slots) == 0 {
		return key + c.Cron.String()
	}
	var times []string
	for _, s := range c.slots() {
		times = append(times, dayNames[mod(int64(s.Weekday), 7)]+"@"+s.At.String())
	}
	return key + strings.Join(times, ",")
}

// Words returns the cadence as a part of an English sentence: "every Monday and Thursday at 08:00".
func (c Cadence) Words() string {
	at := c.clock().String()
	switch c.Mode {
	case Hourly:
		return fmt.Sprintf("every hour at minute %d", c.Minute)
	case Daily:
		return "every day at " + at
	case Weekly:
		var names []string
		for _, day := range c.weekdays() {
			names = append(names, day.String())
		}
		return "every " + enumerate(names) + " at " + at
	case Monthly:
		return "on the " + ordinal(c.day()) + " of each month at " + at
	}
	if len(c.Slots) == 0 {
		return "at the times of cron " + c.Cron.String()
	}
	var times []string
	for _, s := range c.slots() {
		times = append(times, fmt.Sprintf("%s at %s", s.Weekday, s.At))
	}
	return "every " + enumerate(times)
}

// ordinal returns a day of the month as a word: 1st, "30th or last day", "last day".
func ordinal(day int) string {
	switch {
	case day >= 31:
		return "last day"
	case day >= 29:
		return fmt.Sprintf("%dth or last day", day)
	case day%10 == 1 && day != 11:
		return fmt.Sprintf("%dst", day)
	case day%10 == 2 && day != 12:
		return fmt.Sprintf("%dnd", day)
	case day%10 == 3 && day != 13:
		return fmt.Sprintf("%drd", day)
	}
	return fmt.Sprintf("%dth", day)
}

// enumerate joins words with commas and "and".
func enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// clock returns the time of the day of a daily, weekly or monthly cadence.
func (c Cadence) clock() Clock { return Clock(c.Hour*60 + c.Minute) }

// weekdays returns the days of a weekly cadence from Monday on.
func (c Cadence) weekdays() (days []time.Weekday) {
	on := c.days()
	for n := range time.Weekday(7) {
		if day := (n + time.Monday) % 7; on[day] {
			days = append(days, day)
		}
	}
	return days
}

// slots returns the different times of a custom cadence in their order from Monday on.
func (c Cadence) slots() []Slot {
	fromMonday := func(s Slot) int64 { return mod(s.minute()-int64(time.Monday)*perDay, perWeek) }
	slots := slices.Clone(c.Slots)
	slices.SortFunc(slots, func(a, b Slot) int { return int(fromMonday(a) - fromMonday(b)) })
	return slices.Compact(slots)
}

// Span returns an upper bound of the time between the instants of two periods, in any zone. It allows for
// clocks that go back by a day and for a date that they jump over. For a cron it is 5 years.
func (c Cadence) Span() time.Duration {
	const day = 24 * time.Hour
	switch c.Mode {
	case Hourly:
		return day + time.Hour
	case Daily:
		return 2 * day
	case Weekly:
		return 14 * day
	case Monthly:
		return 62 * day
	}
	if len(c.Slots) > 0 {
		return 14 * day
	}
	return 5 * 366 * day
}
