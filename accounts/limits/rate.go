package limits

import (
	"math"
	"strconv"
)

// Rate bounds how many recipients a scope serves. A field that is zero, negative or infinite bounds nothing.
type Rate struct {
	PerSecond float64 // on average; Burst at once
	PerMinute float64 // in any 60 seconds
	PerDay    float64 // in any 24 hours
	// Burst is the size of the bucket of PerSecond: recipients at once after a pause. Zero: PerSecond, at least
	// 1.
	Burst int
}

// Bounded reports whether the rate bounds anything.
func (r Rate) Bounded() bool { return r.clean() != Rate{} }

// clean turns every way of saying "unbounded" into zero.
func (r Rate) clean() Rate {
	for _, f := range []*float64{&r.PerSecond, &r.PerMinute, &r.PerDay} {
		if !(*f > 0) || math.IsInf(*f, 1) {
			*f = 0
		}
	}
	if r.Burst < 0 || r.PerSecond == 0 {
		r.Burst = 0
	}
	return r
}

// Scope is an account or a gateway, with its rate.
type Scope struct {
	// Name is "account:<id>" or "gateway:<id>". It must not be empty or contain a space.
	Name string
	// Rate is the rate of the scope now. The zero value bounds nothing; pauses still hold.
	Rate Rate
}

// The reasons of take.lua.
const (
	bySecond   = "s"
	byMinute   = "m"
	byDay      = "d"
	byThrottle = "t"
)

// reason returns a reason of take.lua in words.
func (r Rate) reason(code string) string {
	switch code {
	case bySecond:
		return number(r.PerSecond) + " a second"
	case byMinute:
		return number(r.PerMinute) + " a minute"
	case byDay:
		return number(r.PerDay) + " a day"
	}
	return "slowed down, as the relay asked"
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
