package schedule

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// set is numbers 0 to 63, one in each bit.
type set uint64

func (s set) has(n int) bool { return s>>n&1 == 1 }

// from returns the first number of the set that is not below n, or -1.
func (s set) from(n int) int {
	if rest := s >> n << n; n < 64 && rest != 0 {
		return bits.TrailingZeros64(uint64(rest))
	}
	return -1
}

// mostDays bounds the search for the next day of a cron: 5 years.
const mostDays = 5*365 + 1

// next returns the first minute, not before minute, at which the cron comes. Both are counted since 1970 by
// the clocks on the wall. It is false if there is none within 5 years.
func (c Cron) next(minute int64) (int64, bool) {
	today := floorDiv(minute, perDay)
	if c.on(date(today)) {
		if at := c.nextClock(int(mod(minute, perDay))); at >= 0 {
			return today*perDay + int64(at), true
		}
	}
	day, ok := c.nextDay(today+1, today+mostDays)
	return day*perDay + int64(c.nextClock(0)), ok
}

// on reports whether the cron comes on a date.
func (c Cron) on(year int, month time.Month, day int) bool {
	if !c.months.has(int(month)) {
		return false
	}
	weekday := mod(dayOf(year, month, day)+int64(time.Thursday), 7)
	onDay, onWeekday := c.days.has(day), c.weekdays.has(int(weekday))
	if c.both {
		return onDay && onWeekday
	}
	return onDay || onWeekday
}

// nextDay returns the first day from day to last on which the cron comes, counted since 1970.
func (c Cron) nextDay(day, last int64) (int64, bool) {
	for day <= last {
		year, month, dayOfMonth := date(day)
		switch {
		case c.on(year, month, dayOfMonth):
			return day, true
		case c.months.has(int(month)):
			day++
		default:
			day = dayOf(year, month+1, 1)
		}
	}
	return 0, false
}

// nextClock returns the first minute of a day, not before minute, at which the cron comes; -1: none.
func (c Cron) nextClock(minute int) int {
	hour := c.hours.from(minute / 60)
	if hour == minute/60 {
		if at := c.minutes.from(minute % 60); at >= 0 {
			return hour*60 + at
		}
		hour = c.hours.from(hour + 1)
	}
	if hour < 0 || c.minutes == 0 {
		return -1
	}
	return hour*60 + c.minutes.from(0)
}

// check returns an error if a parsed cron comes too seldom or too often.
func (c Cron) check() []fault.Field {
	// Until 2100 the calendar repeats after 28 years. Each search begins within 30 days of a period.
	const step, years = 30, 28
	first := dayOf(2000, time.January, 1)
	for day := first; day < first+years*366; day += step {
		if _, ok := c.nextDay(day, day+mostDays-step); !ok {
			return []fault.Field{{Key: "cron", Message: "must come at least once in 5 years"}}
		}
	}
	earlier, text := -perDay, "must be at least %d minutes apart, but %s is followed by %s"
	for at := c.nextClock(0); at >= 0; at = c.nextClock(at + 1) {
		if at-earlier < leastApart {
			return []fault.Field{{Key: "cron", Message: fmt.Sprintf(text, leastApart, Clock(earlier), Clock(at))}}
		}
		earlier = at
	}
	if at := c.nextClock(0); at+perDay-earlier < leastApart {
		return []fault.Field{{Key: "cron", Message: fmt.Sprintf(text, leastApart, Clock(earlier), Clock(at))}}
	}
	return nil
}
