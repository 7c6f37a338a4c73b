package schedule

import (
	"errors"
	"fmt"
	"math"
	"time"
)

var localLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05"}

var errAt = errors.New("must be a time such as 2026-12-24T08:00, or with an offset 2026-12-24T08:00:00+01:00")

// At reads an instant in RFC 3339, or a local time in loc: 2026-12-24T08:00 or 2026-12-24T08:00:05. A local
// time that clocks skip is an error that names the next one. If it comes twice, it is the first. The result
// is in loc. Years are 0 to 9999.
func At(text string, loc *time.Location) (time.Time, error) {
	var at time.Time
	if at.UnmarshalText([]byte(text)) == nil {
		return at.In(loc), nil
	}
	for _, layout := range localLayouts {
		if wall, err := time.Parse(layout, text); err == nil && wall.Format(layout) == text {
			return local(wall, layout, loc)
		}
	}
	return time.Time{}, errAt
}

// instantForms are the forms of ISO 8601 in use.
var instantForms = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05.999999999", "2006-01-02T15:04", time.DateOnly}

var errInstant = errors.New("must be a time such as 2026-01-31T09:00:00Z")

// Floating is the zone of an instant that has yet to get one. Until then it counts as UTC.
var Floating = time.FixedZone("floating", 0)

// Instant reads an instant in any form of ISO 8601. One without an offset is a local time, as Local has it.
func Instant(text string, loc *time.Location) (time.Time, error) {
	for i, form := range instantForms {
		if t, err := time.Parse(form, text); err == nil && i < 3 {
			return t.UTC(), nil
		} else if err == nil {
			return Local(t, loc)
		}
	}
	return time.Time{}, errInstant
}

// Local returns the first instant at which the clocks of loc show what wall shows in UTC. A time that clocks
// skip is an error.
func Local(wall time.Time, loc *time.Location) (time.Time, error) {
	if loc == Floating {
		return wall.In(loc), nil
	}
	at, err := local(wall, localLayouts[1], loc)
	return at.Add(time.Duration(wall.Nanosecond())).UTC(), err
}

// mostOffset is more than clocks of any zone differ from UTC, in seconds.
const mostOffset = 26 * 60 * 60

// local returns the first instant at which the clocks of loc show what wall shows in UTC.
func local(wall time.Time, layout string, loc *time.Location) (time.Time, error) {
	unix, shows := reach(wall.Unix(), loc)
	at := time.Unix(unix, 0).In(loc)
	if shows != wall.Unix() {
		return time.Time{}, fmt.Errorf("%s does not exist in %s: its clocks jump to %s", wall.Format(layout), loc,
			at.Format(layout))
	}
	return at, nil
}

// reach returns the first instant at which the clocks of loc show wall or later, and the time that they show
// then. wall and shows are seconds since 1970 by the clocks on the wall. If clocks jump over wall, shows is
// after it. A later wall never has an earlier instant.
func reach(wall int64, loc *time.Location) (at, shows int64) {
	at = wall - mostOffset
	for range mostPeriods {
		p := periodAt(at, loc)
		if shows = at + p.offset; shows >= wall {
			break
		}
		if exact := wall - p.offset; p.last || exact < p.until {
			return exact, wall
		}
		at = p.until
	}
	return at, shows
}

// latest returns the latest time that the clocks of loc have shown until an instant, counted as reach does.
// If they went back a short time before, it is after what they show at the instant.
func latest(unix int64, loc *time.Location) (wall int64) {
	at := unix - 2*mostOffset
	wall = math.MinInt64
	for range mostPeriods {
		p := periodAt(at, loc)
		if p.last || p.until > unix {
			return max(wall, unix+p.offset)
		}
		wall = max(wall, p.until-1+p.offset)
		at = p.until
	}
	return wall
}
