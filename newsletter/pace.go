package newsletter

import (
	"math"
	"time"

	"github.com/postroom/postroom/accounts/limits"
)

// pace is how fast mail may go. Zero: none goes. Infinite: it is not bounded.
type pace struct{ perSecond, perDay float64 }

// paceOf returns the pace that a rate allows.
func paceOf(r limits.Rate) pace {
	bound := func(n float64) float64 {
		if n <= 0 {
			return math.Inf(1)
		}
		return n
	}
	p := pace{perSecond: min(bound(r.PerSecond), bound(r.PerMinute)/60)}
	p.perDay = min(bound(r.PerDay), p.perSecond*secondsOfDay)
	return p
}

const secondsOfDay = 24 * 60 * 60

// plus is the pace of two ways together.
func (p pace) plus(q pace) pace { return pace{p.perSecond + q.perSecond, p.perDay + q.perDay} }

// least is the pace that keeps to both.
func (p pace) least(q pace) pace {
	return pace{min(p.perSecond, q.perSecond), min(p.perDay, q.perDay)}
}

func (p pace) get() (perSecond, perDay float64) { return p.perSecond, p.perDay }

// mostDays bounds what duration looks at.
const mostDays = 366

// duration returns how long mail to some people takes at least, and whether that is at most a year. paceOn
// returns the pace of a day from now.
func duration(people int, paceOn func(day int) (perSecond, perDay float64)) (time.Duration, bool) {
	left := float64(people)
	for day := range mostDays {
		perSecond, perDay := paceOn(day)
		if left <= perDay {
			seconds := left / perSecond // 0 if it is not bounded
			return time.Duration(day)*24*time.Hour + time.Duration(seconds*float64(time.Second)), true
		}
		left -= perDay
	}
	return 0, false
}
