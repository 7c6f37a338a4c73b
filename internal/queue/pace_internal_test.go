package queue

import (
	"testing"
	"time"
)

// TestPace: tasks per minute, over five minutes at most, and not before there is something to report.
func TestPace(t *testing.T) {
	t.Parallel()
	var p pace
	begin := time.Now()
	at := func(seconds, total int) float64 {
		got := p.note("submit", total, begin.Add(time.Duration(seconds)*time.Second))
		if got == nil {
			return -1
		}
		return *got
	}
	for _, step := range []struct {
		seconds, total int
		want           float64
	}{
		{0, 1000, -1}, {1, 1001, -1}, {19, 1010, -1}, {30, 1015, 30}, {60, 1030, 30}, {300, 1030, 6},
		{600, 1030, 0}, {601, 3, -1}, {661, 63, 60},
	} {
		if got := at(step.seconds, step.total); got != step.want {
			t.Errorf("after %d s with %d: %v a minute, want %v", step.seconds, step.total, got, step.want)
		}
	}
	if got := p.note("bulk", 5, begin); got != nil {
		t.Errorf("another queue has the pace %v", *got)
	}
}
