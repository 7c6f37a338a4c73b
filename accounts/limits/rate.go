package limits

import (
	"math"
	"strconv"
	"strings"
)

// Rate bounds how many recipients a scope serves. A field that is zero, negative or infinite bounds nothing.
type Rate struct {
	PerSecond float64 // on average; Burst together
	PerMinute float64 // in any 60 seconds
	PerDay    float64 // in any 24 hours
	// Burst is the size of the bucket of PerSecond: recipients together after a pause. Defaults to PerSecond, at
	// least 1.
	Burst int
}

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

// Scope is an account, a gateway or a destination of a gateway, with its rate.
type Scope struct {
	// Name is "account:<id>", "gateway:<id>" or a [Destination]. It must not be empty or contain a space.
	Name string
	// Rate is the rate of the scope now. The zero value bounds nothing; pauses still hold.
	Rate Rate
	// Bulk says that the message is bulk mail, which leaves a fifth of each rate to other mail.
	Bulk bool
	// Recipients is how many of the message's recipients the scope is about; 0 means all of them.
	Recipients int
}

const destinationKind = "dest:"

// Destination returns the name of the scope of a group of recipients' domains at a gateway.
func Destination(gateway, group string) string { return destinationKind + gateway + ":" + group }

// IsDestination reports whether a scope of this name is a destination.
func IsDestination(scope string) bool { return strings.HasPrefix(scope, destinationKind) }

// bulkShare is the share of a rate that bulk mail may use.
const bulkShare = 0.8

const bulkSuffix = ":bulk"

// forBulk returns the scope for a scope's bulk mail. Bulk mail asks it first and waits there, so that it
// reserves in the scope itself only what can go now.
func (s Scope) forBulk() Scope {
	r := s.Rate
	for _, f := range []*float64{&r.PerSecond, &r.PerMinute, &r.PerDay} {
		*f *= bulkShare
	}
	if r.Burst > 0 {
		r.Burst = max(1, int(bulkShare*float64(r.Burst)))
	}
	return Scope{Name: s.Name + bulkSuffix, Rate: r, Recipients: s.Recipients}
}

// reason returns why a message waits in a scope, as text. code is a reason of reserve.lua.
func (s Scope) reason(code string) string {
	name, isBulk := strings.CutSuffix(s.Name, bulkSuffix)
	asked := "the relay"
	if of, ok := strings.CutPrefix(name, destinationKind); ok {
		gateway, group, _ := strings.Cut(of, ":")
		name, asked = "gateway:"+gateway+" to "+group, "the receiver"
	}
	text := strings.Replace(name, ":", " ", 1) + ": " + s.Rate.reason(code)
	if code == byThrottle {
		text += asked + " asked"
	}
	if isBulk {
		text += " for bulk mail"
	}
	return text
}

// The reasons of reserve.lua.
const (
	bySecond   = "s"
	byMinute   = "m"
	byDay      = "d"
	byThrottle = "t"
)

// reason returns a reason of reserve.lua as text.
func (r Rate) reason(code string) string {
	switch code {
	case bySecond:
		return number(r.PerSecond) + " a second"
	case byMinute:
		return number(r.PerMinute) + " a minute"
	case byDay:
		return number(r.PerDay) + " a day"
	}
	return "slowed down, as "
}

// number writes a rate with three decimals at most: four fifths of one have more.
func number(f float64) string { return strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64) }
