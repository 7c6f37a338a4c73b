package gateways

import (
	"cmp"
	"math"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
)

// usualGrowth is the default factor by which a gateway that warms up sends more each day. Receivers accept a
// new address within two to eight weeks; from 50 a day, this factor makes 10,000 a day in two weeks.
const usualGrowth = 1.5

func (f *Faults) warmup(w *api.Warmup, l *api.Limits) {
	if w == nil {
		return
	}
	if !(w.PerDay >= 1) {
		f.Add("warmup.perDay", "must be 1 or more")
	}
	if w.Growth != 0 && !(w.Growth >= 1) {
		f.Add("warmup.growth", "must be 1 or more")
	}
	if l != nil && l.PerDay > 0 && w.PerDay > l.PerDay {
		f.Add("warmup.perDay", "must not be more than limits.perDay, its final limit")
	}
}

// begun returns a warm-up with its first day set.
func (s *Store) begun(w *api.Warmup) *api.Warmup {
	if w == nil || w.Started != nil {
		return w
	}
	started := *w
	started.Started = new(s.now().UTC().Truncate(time.Millisecond))
	return &started
}

// RateAt returns the relay's rate at a time: its limits, or the lower limit of a day of its warm-up.
func (r Relay) RateAt(now time.Time) limits.Rate {
	rate, w := r.Rate, r.Warmup
	if w == nil || w.Started == nil {
		return rate
	}
	growth := w.Growth
	growth = cmp.Or(growth, usualGrowth)
	day := math.Floor(max(0, now.Sub(*w.Started).Hours()/24))
	today := math.Floor(w.PerDay * math.Pow(growth, day))
	if today > 1e9 || rate.PerDay > 0 && today >= rate.PerDay {
		return rate
	}
	rate.PerDay = today
	return rate
}
