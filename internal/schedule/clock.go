package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines that have no time zones
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

func (c Clock) valid() bool { return c >= 0 && c < perDay }

// long matches days and weeks in a duration.
var long = regexp.MustCompile(`([0-9.]+)([dw])`)

// ParseDuration parses a duration as [time.ParseDuration] does, and also days of 24 hours and weeks: 7d, 2w,
// 1d12h.
func ParseDuration(text string) (time.Duration, error) {
	return time.ParseDuration(long.ReplaceAllStringFunc(text, func(part string) string {
		n, unit := part[:len(part)-1], 24.
		if strings.HasSuffix(part, "w") {
			unit *= 7
		}
		days, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return part
		}
		return strconv.FormatFloat(days*unit, 'f', -1, 64) + "h"
	}))
}

// fullName is a name of the IANA of the form region/place. Shorter names, such as CET, are abbreviations or
// old; posix/ and right/ are folders of some machines.
var fullName = regexp.MustCompile(`^[A-Z][A-Za-z_]*(/[A-Z][A-Za-z0-9_+-]*){1,2}$`)

// mostZoneName is longer than any name of the IANA, in bytes.
const mostZoneName = 64

var errZone = errors.New("must be a time zone such as Europe/Zurich, or UTC")

// Zone returns the time zone of a full IANA name, or UTC. Abbreviations, offsets, "Local" and the empty name
// are refused: they are ambiguous, have no daylight saving time, or differ between machines.
func Zone(name string) (*time.Location, error) {
	if name == "UTC" {
		return time.UTC, nil
	}
	if len(name) > mostZoneName || !fullName.MatchString(name) {
		return nil, errZone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errZone
	}
	return zone, nil
}

// period is a time in which the clocks of a zone keep their distance to UTC.
type period struct {
	until  int64 // its end in Unix seconds
	offset int64 // seconds east of UTC
	last   bool  // it has no end; until is meaningless
}

// periodAt returns the period that holds an instant.
func periodAt(unix int64, loc *time.Location) period {
	at := time.Unix(unix, 0).In(loc)
	_, offset := at.Zone()
	_, until := at.ZoneBounds()
	return period{until: until.Unix(), offset: int64(offset), last: until.IsZero() || until.Unix() <= unix}
}
