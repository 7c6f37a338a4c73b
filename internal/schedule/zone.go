package schedule

import (
	"errors"
	"regexp"
	"time"
	_ "time/tzdata" // for machines that have no time zones
)

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
