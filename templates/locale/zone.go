package locale

import (
	"errors"
	"time"
)

// errZone describes a valid time zone.
var errZone = errors.New("must be a time zone, such as Europe/Zurich")

// Zone returns the IANA time zone of a name, the same on every machine. The empty name is UTC. "Local" is
// refused: it differs between machines.
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
