package queue

import (
	"cmp"
	"math"
	"time"
)

// Backoff is the wait between attempts. Its zero value waits 10 s, 20 s, 40 s and so on, without jitter.
type Backoff struct {
	Base   time.Duration // before attempt n it waits Base × Factor^(n-1); defaults to 5 s
	Factor float64       // defaults to 2; below 1 counts as 1
	// the share of the delay by which it varies either way, 0.2 being ±20 %; defaults to none; at most 1
	Jitter float64
	Max    time.Duration // no delay is longer, jitter included; zero for no limit
	// Schedule lists the delays instead of Base and Factor: the first before attempt 2; the last one
	// repeats.
	Schedule []time.Duration
}

// longest is the limit of delays if Max is larger: long enough for any message, and safe to add to a time.
const longest = 10 * 365 * 24 * time.Hour

// Delay returns the wait before the attempt with this number. Attempt 1 does not wait. Delay is pure: rnd,
// in [0, 1), selects the jitter; 0.5 means none.
func (b Backoff) Delay(attempt int, rnd float64) time.Duration {
	if attempt < 2 {
		return 0
	}
	most := longest
	if b.Max > 0 {
		most = min(b.Max, longest)
	}
	limit := float64(most)
	d := math.Min(b.plain(attempt), limit)
	d *= 1 + clamp(b.Jitter, 0, 1)*(2*clamp(rnd, 0, 1)-1)
	if d > limit {
		// Mirrored below the limit, not cut off at it: otherwise messages that failed together would be
		// retried together.
		d = 2*limit - d
	}
	// above 2^53 ns a float64 may be a little more than the limit it was made of
	return min(time.Duration(d), most)
}

// plain returns the delay without limit and jitter, in nanoseconds; it may be infinite.
func (b Backoff) plain(attempt int) float64 {
	if n := len(b.Schedule); n > 0 {
		return math.Max(0, float64(b.Schedule[min(attempt-2, n-1)]))
	}
	base, factor := b.Base, b.Factor
	if base <= 0 {
		base = 5 * time.Second
	}
	factor = cmp.Or(factor, 2)
	return float64(base) * math.Pow(math.Max(factor, 1), float64(attempt-1))
}

func clamp(x, low, high float64) float64 {
	if !(x > low) { // x <= low would miss NaN
		return low
	}
	return math.Min(x, high)
}
