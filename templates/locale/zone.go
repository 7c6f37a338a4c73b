package locale

import (
	"errors"
	"time"
)

// errZone says what a time zone looks like.
var errZone = errors.New("must be a time zone, such as Europe/Zurich")

// Zone finds a time zone by its name in the IANA database, the same on each machine. The empty name is UTC; "Local", which differs from machine
// to machine, is no zone.
func Zone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errZone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errZone
	}
	return zone, nil
}
