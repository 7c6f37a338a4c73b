package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// Quiet is quiet hours: times of the week in which nothing is sent. They are the hours of its windows.
type Quiet []Window

// mostQuiet is how many windows quiet hours may have.
const mostQuiet = 20

// Check returns the wrong fields: quiet, quiet[2].from, quiet[2].until. Quiet hours must not cover the whole
// week.
func (q Quiet) Check() (wrong fault.Fields) {
	if len(q) > mostQuiet {
		return []fault.Field{{Key: "quiet", Message: fmt.Sprintf("must be at most %d windows", mostQuiet)}}
	}
	for i, w := range q {
		if !w.From.valid() {
			wrong.Add(fmt.Sprintf("quiet[%d].from", i), "%s", errClock)
		}
		if !w.Until.valid() {
			wrong.Add(fmt.Sprintf("quiet[%d].until", i), "%s", errClock)
		}
	}
	if _, ends := q.left(0); len(wrong) == 0 && !ends {
		wrong.Add("quiet", "must leave some time of the week free")
	}
	return wrong
}

// In reports whether an instant is in quiet hours, by the clocks of a zone.
func (q Quiet) In(at time.Time, loc *time.Location) bool {
	return slices.ContainsFunc(q, func(w Window) bool { return w.Open(at, loc) })
}

// End returns the first instant, not before at, that is outside quiet hours: at itself if it is outside, else
// an instant in loc. Quiet hours that never end, which Check refuses, end immediately.
func (q Quiet) End(at time.Time, loc *time.Location) time.Time {
	if !q.In(at, loc) {
		return at
	}
	unix := at.Unix()
	for range mostPeriods {
		p := periodAt(unix, loc)
		left, ends := q.left(unix + p.offset)
		if !ends {
			return at
		}
		if p.last || unix+left < p.until {
			unix += left
			break
		}
		unix = p.until
	}
	return time.Unix(unix, 0).In(loc)
}

// left returns the seconds until quiet hours end if no clock is changed, or 0 outside of them. wall is the
// seconds since 1970 by the clocks on the wall. It is false if they never end.
func (q Quiet) left(wall int64) (seconds int64, ends bool) {
	for seconds <= perWeek*60 {
		var longest int64
		for _, w := range q {
			longest = max(longest, w.left(wall+seconds))
		}
		if longest == 0 {
			return seconds, true
		}
		seconds += longest
	}
	return 0, false
}

// Longest returns an upper bound of the time from the beginning of quiet hours to their end: twice the
// longest of the week, since clocks may change once in between.
func (q Quiet) Longest() time.Duration {
	var longest int64
	for _, w := range q {
		for day := range w.Days {
			if !w.begins(day) {
				continue
			}
			left, ends := q.left((int64(day)*perDay + int64(w.From) - int64(time.Thursday)*perDay) * 60)
			if !ends {
				left = perWeek * 60
			}
			longest = max(longest, left)
		}
	}
	return 2 * time.Duration(longest) * time.Second
}
