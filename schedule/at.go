package schedule

import (
	"errors"
	"fmt"
	"time"
)

// localLayouts are how a local time is written.
var localLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05"}

var errAt = errors.New("must be a time such as 2026-12-24T08:00, or with an offset 2026-12-24T08:00:00+01:00")

// At reads an instant in RFC 3339, or a local time in loc: 2026-12-24T08:00 or 2026-12-24T08:00:05. A local
// time that clocks skip is an error that names the next one. Of one that comes twice it is the first. The
// result is in loc. Years are 0 to 9999.
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

// mostOffset is more than clocks of any zone differ from UTC, in seconds.
const mostOffset = 26 * 60 * 60

// local returns the first instant at which the clocks of loc show what wall shows in UTC.
func local(wall time.Time, layout string, loc *time.Location) (time.Time, error) {
	shown := wall.Unix()
	at := shown - mostOffset
	for range mostPeriods {
		p := periodAt(at, loc)
		if exact := shown - p.offset; exact >= at && (p.last || exact < p.until) {
			return time.Unix(exact, 0).In(loc), nil
		}
		if at+p.offset > shown {
			break
		}
		at = p.until
	}
	return time.Time{}, fmt.Errorf("%s does not exist in %s: its clocks jump to %s", wall.Format(layout), loc,
		time.Unix(at, 0).In(loc).Format(layout))
}
