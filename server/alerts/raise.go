package alerts

import (
	"math"
	"time"
)

// state is a standing alert, as it is stored.
type state struct {
	Alert     string    `json:"alert"`
	Queue     string    `json:"queue,omitempty"`
	Text      string    `json:"text"`
	Value     float64   `json:"value"`
	Threshold float64   `json:"threshold"`
	Since     time.Time `json:"since"`
	Judged    time.Time `json:"judged"`         // when a process could last check whether it still holds
	Clear     time.Time `json:"clear,omitzero"` // since when it does not; zero: it holds
}

// finding is the result of a check for one alert.
type finding struct {
	alert     string
	queue     string
	wrong     bool
	value     float64
	threshold float64
	text      string
}

// key is unique among alerts.
func (f finding) key() string {
	if f.queue == "" {
		return f.alert
	}
	return f.alert + ":" + f.queue
}

// act is the change of an alert.
type act int

const (
	nothing act = iota
	raise       // write it, with its event
	note        // write it: it stands with another value, or its condition has ceased to hold
	resolve     // delete it, with its event
)

// decision is the change of an alert, and its new state; of resolve, its last state.
type decision struct {
	do   act
	next state
	over bool // there is nothing wrong
}

const (
	noteEvery = time.Minute // interval at which an alert that holds is written again
	// an alert that no process could check for so long is resolved: it was switched off, or its source is gone
	staleAfter = 5 * time.Minute
)

// decide returns the change of an alert, from its present state (nil: none) and the finding of a check (nil:
// there is none, because a source failed).
func decide(now time.Time, stood *state, f *finding, quiet time.Duration) decision {
	switch {
	case stood == nil && (f == nil || !f.wrong):
		return decision{over: f != nil}
	case stood == nil:
		return decision{do: raise, next: f.state(now, now)}
	case f == nil:
		return forgotten(now, *stood)
	case f.wrong:
		return still(now, *stood, *f)
	}
	return passing(now, *stood, *f, quiet)
}

// state returns the state of the alert of a finding.
func (f finding) state(since, now time.Time) state {
	return state{
		Alert: f.alert, Queue: f.queue, Text: f.text, Value: round(f.value), Threshold: round(f.threshold),
		Since: since, Judged: now,
	}
}

// round rounds to milliseconds, and tenths of a percent.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// forgotten decides about an alert without a finding.
func forgotten(now time.Time, stood state) decision {
	if now.Sub(stood.Judged) < staleAfter {
		return decision{}
	}
	stood.Text = "Nobody watches for this any more, or it can't be measured. Last seen: " + stood.Text
	return decision{do: resolve, next: stood}
}

// still decides about an alert that holds.
func still(now time.Time, stood state, f finding) decision {
	if stood.Clear.IsZero() && now.Sub(stood.Judged) < noteEvery {
		return decision{}
	}
	return decision{do: note, next: f.state(stood.Since, now)}
}

// passing decides about an alert whose condition does not hold now.
func passing(now time.Time, stood state, f finding, quiet time.Duration) decision {
	next := stood
	next.Judged = now
	switch {
	case stood.Clear.IsZero():
		next.Clear = now
		return decision{do: note, next: next}
	case now.Sub(stood.Clear) >= quiet:
		next.Text, next.Value, next.Threshold = "Over. It was: "+stood.Text, round(f.value), round(f.threshold)
		return decision{do: resolve, next: next}
	}
	return decision{}
}
