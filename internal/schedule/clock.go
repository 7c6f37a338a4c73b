package schedule

import (
	"errors"
	"fmt"
	"time"
)

// Clock is a time of the day: minutes since midnight, 0 to 1439, as a clock on the wall shows them.
type Clock int

// minutes of a day and of a week.
const (
	perDay  = 24 * 60
	perWeek = 7 * perDay
)

// clockLayout is how a Clock is written.
const clockLayout = "15:04"

var errClock = errors.New("must be a time of the day from 00:00 to 23:59, such as 08:00")

// ParseClock reads a time of the day with two digits for the hour and two for the minute.
func ParseClock(text string) (Clock, error) {
	at, err := time.Parse(clockLayout, text)
	if err != nil || at.Format(clockLayout) != text {
		return 0, errClock
	}
	return Clock(at.Hour()*60 + at.Minute()), nil
}

// String returns the clock as ParseClock reads it.
func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", int(c)/60, int(c)%60) }

// valid reports whether the clock is a time of the day.
func (c Clock) valid() bool { return c >= 0 && c < perDay }
