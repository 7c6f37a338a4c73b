package peers

import "time"

// Pace is the least speed of a sender: each Bytes must come within Every, or the end. Whoever sends in bursts
// gains nothing for later: a pause is never longer than Every. The zero value demands nothing.
type Pace struct {
	Bytes int64
	Every time.Duration
}

// PaceOf returns the pace of a rate in bytes a second, which is measured over every.
func PaceOf(rate int64, every time.Duration) Pace {
	return Pace{Bytes: rate * int64(every/time.Second), Every: every}
}

// Window is the part of a body in which a pace is measured.
type Window struct {
	pace Pace
	got  int64
}

// Window begins to measure. The first deadline is now and Pace.Every.
func (p Pace) Window() Window { return Window{pace: p} }

// Got counts bytes that arrived. It reports whether a new window begins, whose deadline is now and
// Pace.Every.
func (w *Window) Got(n int) bool {
	if w.got += int64(n); w.got < w.pace.Bytes {
		return false
	}
	w.got = 0
	return true
}
