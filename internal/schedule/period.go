package schedule

import (
	"fmt"
	"time"
)

// Period is one turn of a cadence.
type Period struct {
	// ID names the period by the local date and time that were asked for, never by the instant: hourly
	// 2026-11-22T14, daily 2026-11-22, weekly 2026-W47 (on several weekdays 2026-W47-2, with the number of the
	// weekday from Monday 1), monthly 2026-11, custom 2026-11-22T08:30. IDs of one cadence sort in the order
	// of time.
	ID string
	// At is the first instant at which the clocks show Asked or later, in the zone that was asked for.
	At time.Time
	// Asked is the local time that was asked for: 2026-11-22T08:00. If clocks skip it, At shows a later one.
	Asked string
}

// The years of periods: the ones that an ID has four digits for. The first and the last minute are counted
// since 1970 by the clocks on the wall.
const (
	firstMinute = -719162 * perDay
	lastMinute  = 2932897*perDay - 1
)

// Next returns the first period after an instant, by the clocks of a zone. It is false if there is none: the
// cadence has an impossible value, its cron does not come within 5 years, or the year would be after 9999.
// The first period is in the year 1. A cron of 29 February is thus false from March 2096 to February 2099,
// because 2100 isn't a leap year.
//
// If several periods fall on one instant, because clocks jump over them, only the newest is returned. A date
// that clocks jump over has no periods.
func (c Cadence) Next(after time.Time, loc *time.Location) (Period, bool) {
	if len(c.checkFields()) > 0 {
		return Period{}, false
	}
	// Instants beyond the years would overflow.
	unix := min(max(after.Unix(), firstMinute*60-mostOffset), lastMinute*60+mostOffset)
	minute := max(floorDiv(latest(unix, loc), 60), firstMinute-1)
	for range mostPeriods {
		asked, ok := c.next(minute)
		if !ok || asked > lastMinute {
			break
		}
		at, shows := reach(asked*60, loc)
		newest, found := asked, false
		for ; ok && asked*60 <= shows; asked, ok = c.next(asked) {
			minute = asked
			if !skipped(floorDiv(asked, perDay), at, shows, loc) {
				newest, found = asked, true
			}
		}
		if found {
			return c.period(newest, at, loc), true
		}
	}
	return Period{}, false
}

// skipped reports whether the clocks, which show shows at the instant at, never showed a date until then. The
// date is counted in days since 1970.
func skipped(date, at, shows int64, loc *time.Location) bool {
	if shows < (date+1)*perDay*60 {
		return false
	}
	begins, _ := reach(date*perDay*60, loc)
	return begins == at
}

// next returns the first minute after a minute at which the cadence comes by the clocks on the wall; both are
// counted since 1970. It is false if a cron does not come within 5 years.
func (c Cadence) next(minute int64) (int64, bool) {
	minute++
	clock := int64(c.clock())
	switch c.Mode {
	case Hourly:
		return minute + mod(int64(c.Minute)-minute, 60), true
	case Daily:
		return minute + mod(clock-minute, perDay), true
	case Weekly:
		least := int64(perWeek)
		for day, on := range c.days() {
			if on {
				least = min(least, mod(int64(day)*perDay+clock-ofWeek(minute), perWeek))
			}
		}
		return minute + least, true
	case Monthly:
		return c.nextMonthly(minute, clock), true
	}
	if len(c.Slots) == 0 {
		return c.Cron.next(minute)
	}
	least := int64(perWeek)
	for _, s := range c.Slots {
		least = min(least, mod(s.minute()-ofWeek(minute), perWeek))
	}
	return minute + least, true
}

// nextMonthly returns the first minute, not before minute, that is at the clock on the day of the month.
func (c Cadence) nextMonthly(minute, clock int64) int64 {
	year, month, today := date(floorDiv(minute, perDay))
	day := min(c.day(), daysOf(year, month))
	if today > day || today == day && mod(minute, perDay) > clock {
		month++
		day = min(c.day(), daysOf(year, month))
	}
	return dayOf(year, month, day)*perDay + clock
}

// period returns the period that was asked for at a minute of the clocks on the wall.
func (c Cadence) period(minute, at int64, loc *time.Location) Period {
	wall := time.Unix(minute*60, 0).UTC()
	p := Period{At: time.Unix(at, 0).In(loc), Asked: wall.Format(localLayouts[0])}
	switch c.Mode {
	case Hourly:
		p.ID = wall.Format("2006-01-02T15")
	case Daily:
		p.ID = wall.Format(time.DateOnly)
	case Weekly:
		year, week := wall.ISOWeek()
		p.ID = fmt.Sprintf("%04d-W%02d", year, week)
		if len(c.weekdays()) > 1 {
			p.ID += fmt.Sprintf("-%d", (wall.Weekday()+6)%7+1)
		}
	case Monthly:
		p.ID = wall.Format("2006-01")
	default:
		p.ID = p.Asked
	}
	return p
}

// ofWeek returns the minute of the week, which begins on Sunday, of a minute since 1970.
func ofWeek(minute int64) int64 {
	const firstDay = int64(time.Thursday) // 1 January 1970
	return mod(minute+firstDay*perDay, perWeek)
}

// date returns the date of a day that is counted since 1970.
func date(day int64) (year int, month time.Month, dayOfMonth int) {
	return time.Unix(day*perDay*60, 0).UTC().Date()
}

// dayOf returns a date as days since 1970. A 13th month is January.
func dayOf(year int, month time.Month, day int) int64 {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / (perDay * 60)
}

// daysOf returns how many days a month has. A 13th month is January.
func daysOf(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
