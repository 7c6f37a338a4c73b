package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// Window is hours of a week. The zero Window is always open.
type Window struct {
	Days  [7]bool // by time.Weekday: the days on which it begins; none means all
	From  Clock   // when it begins
	Until Clock   // the first minute after it; at or before From: on the next day, so that equal is 24 hours
}

// dayNames are the days as requests name them, by time.Weekday.
var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseWindow reads a window: days named mon to sun, none for all, and clocks as ParseClock reads them. The
// wrong fields are named days[2], from and until.
func ParseWindow(days []string, from, until string) (Window, []fault.Field) {
	var w Window
	var wrong fault.Fields
	for i, name := range days {
		if day := slices.Index(dayNames, name); day >= 0 {
			w.Days[day] = true
		} else {
			wrong.Add(fmt.Sprintf("days[%d]", i), "must be mon, tue, wed, thu, fri, sat or sun")
		}
	}
	clock := func(key, text string) Clock {
		c, err := ParseClock(text)
		if err != nil {
			wrong.Add(key, "%s", err)
		}
		return c
	}
	w.From, w.Until = clock("from", from), clock("until", until)
	return w, wrong
}

// Open reports whether the window is open at an instant, by the clocks of a zone.
func (w Window) Open(at time.Time, loc *time.Location) bool {
	_, offset := at.In(loc).Zone()
	return w.wait(at.Unix()+int64(offset)) == 0
}

// mostPeriods bounds the search of Next. A window opens within 8 days, and zones change their offset a few
// times a year.
const mostPeriods = 100

// Next returns the first instant, not before at, at which the window is open: at itself if it is open then,
// else an instant in loc. If a made-up zone changed its offset 100 times before the window opens, that would
// be the last change looked at.
func (w Window) Next(at time.Time, loc *time.Location) time.Time {
	if w.Open(at, loc) {
		return at
	}
	next := at.Unix()
	for range mostPeriods {
		p := periodAt(next, loc)
		opens := next + w.wait(next+p.offset)
		if p.last || opens < p.until {
			next = opens
			break
		}
		next = p.until
	}
	return time.Unix(next, 0).In(loc)
}

// wait returns the seconds until the window opens if no clock is changed, or 0 if it is open. wall is the
// seconds since 1970 by the clocks on the wall.
func (w Window) wait(wall int64) int64 {
	minute, length := ofWeek(floorDiv(wall, 60)), w.length()
	least := int64(perWeek)
	for day := range w.Days {
		if !w.begins(day) {
			continue
		}
		start := int64(day)*perDay + int64(w.From)
		if mod(minute-start, perWeek) < length {
			return 0
		}
		least = min(least, mod(start-minute, perWeek))
	}
	return least*60 - mod(wall, 60)
}

// left returns the seconds until the window closes if no clock is changed, or 0 if it is not open. wall is
// the seconds since 1970 by the clocks on the wall.
func (w Window) left(wall int64) int64 {
	minute, length := ofWeek(floorDiv(wall, 60)), w.length()
	var most int64
	for day := range w.Days {
		if w.begins(day) {
			most = max(most, length-mod(minute-int64(day)*perDay-int64(w.From), perWeek))
		}
	}
	if most == 0 {
		return 0
	}
	return most*60 - mod(wall, 60)
}

// length returns how long the window is open, in minutes of the clocks on the wall.
func (w Window) length() int64 {
	if length := mod(int64(w.Until-w.From), perDay); length > 0 {
		return length
	}
	return perDay
}

func (w Window) begins(day int) bool { return w.Days[day] || w.Days == [7]bool{} }

// floorDiv returns a/b, rounded down. b is positive.
func floorDiv(a, b int64) int64 { return (a - mod(a, b)) / b }

// mod returns the rest of a/b, rounded down: 0 to b-1. b is positive.
func mod(a, b int64) int64 { return (a%b + b) % b }
