package queue

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoffDelay(t *testing.T) {
	const s = time.Second
	classic := Backoff{Base: 5 * s, Factor: 2, Jitter: 0.2}
	listed := Backoff{Schedule: []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute}}
	tests := []struct {
		name    string
		backoff Backoff
		attempt int
		rnd     float64
		want    time.Duration
	}{
		{"the first attempt does not wait", classic, 1, 0.5, 0},
		{"nor what comes before it", classic, -3, 0.5, 0},
		{"second", classic, 2, 0.5, 10 * s},
		{"third", classic, 3, 0.5, 20 * s},
		{"fourth", classic, 4, 0.5, 40 * s},
		{"tenth", classic, 10, 0.5, 2560 * s},
		{"least jitter", classic, 2, 0, 8 * s},
		{"most jitter", classic, 2, 1, 12 * s},
		{"zero value", Backoff{}, 2, 0, 10 * s},
		{"base alone", Backoff{Base: 30 * s}, 3, 0, 120 * s},
		{"another factor", Backoff{Base: 30 * s, Factor: 4}, 3, 0, 480 * s},
		{"constant", Backoff{Base: 30 * s, Factor: 1}, 9, 0, 30 * s},
		{"a shrinking factor is constant", Backoff{Base: 30 * s, Factor: 0.1}, 9, 0, 30 * s},
		{"schedule, second", listed, 2, 0.5, time.Minute},
		{"schedule, third", listed, 3, 0.5, 5 * time.Minute},
		{"schedule, fourth", listed, 4, 0.5, 30 * time.Minute},
		{"schedule, the last repeats", listed, 99, 0.5, 30 * time.Minute},
		{"schedule, negative", Backoff{Schedule: []time.Duration{-s}}, 2, 0.5, 0},
		{"maximum", Backoff{Max: 15 * s}, 3, 0.5, 15 * s},
		{"jitter stays below the maximum", Backoff{Max: 15 * s, Jitter: 0.2}, 3, 1, 12 * s},
		{"maximum of a schedule", Backoff{Schedule: []time.Duration{time.Hour}, Max: time.Minute}, 2, 0.5,
			time.Minute},
		{"no overflow", classic, math.MaxInt, 0.5, longest},
		{"no overflow by the base", Backoff{Base: math.MaxInt64, Factor: 1e300}, 50, 0.5, longest},
		{"a limit that no float64 is", Backoff{Factor: 1.5, Max: 1<<53 + 3}, 37, 0.5, 1<<53 + 3},
		{"jitter that is none", Backoff{Jitter: math.NaN()}, 2, math.NaN(), 10 * s},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.backoff.Delay(tt.attempt, tt.rnd); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestBackoffStaysWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{
			Base:   time.Duration(rapid.Int64().Draw(t, "base")),
			Factor: rapid.Float64().Draw(t, "factor"),
			Jitter: rapid.Float64().Draw(t, "jitter"),
			Max:    time.Duration(rapid.Int64().Draw(t, "max")),
		}
		d := b.Delay(rapid.Int().Draw(t, "attempt"), rapid.Float64().Draw(t, "rnd"))
		if d < 0 || d > longest || (b.Max > 0 && d > b.Max) {
			t.Fatalf("%+v waits %v", b, d)
		}
	})
}
