package schedule

import (
	"testing"
	"time"
)

// TestDaysAndWeeksAreDurations: 7d is a week of 168 hours.
func TestDaysAndWeeksAreDurations(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"7d": 7 * day, "2w": 14 * day, "1w2d3h4m": 9*day +
		3*time.Hour +
		4*time.Minute, "1.5d": 36 * time.Hour, "-3d": -3 * day, "90m": 90 * time.Minute, "0": 0} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "7", "7 d", "7D", "1..2d", "7dd", "99999999999w", "seven", "7y",
		"1d-2h"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}
