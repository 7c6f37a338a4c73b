package watch

import (
	"math"
	"time"
)

// state is an alert that stands, as Redis keeps it.
type state struct {
	Alert     string    `json:"alert"`
	Queue     string    `json:"queue,omitempty"`
	Text      string    `json:"text"`
	Value     float64   `json:"value"`
	Threshold float64   `json:"threshold"`
	Since     time.Time `json:"since"`
	Judged    time.Time `json:"judged"`         // when somebody last could say whether it still holds
	Clear     time.Time `json:"clear,omitzero"` // since when it does not; zero: it holds
}

// finding is what a look says about one alert.
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

// act is what is to be done about an alert.
type act int

const (
	nothing act = iota
	raise       // write it down, with its event
	note        // write it down: it stands, with another value, or has begun to be over
	resolve     // strike it out, with its event
)

// decision is what is to be done, and how the alert then stands; of resolve, how it stood.
type decision struct {
	do   act
	next state
	over bool // there is nothing wrong
}

const (
	noteEvery = time.Minute // how often an alert that holds is written down anew
	// an alert that nobody can judge for so long is resolved: it was switched off, or what it was about is gone
	staleAfter = 5 * time.Minute
)

// decide says what to do about an alert that stands (nil: it does not), from what a look found (nil: it
// could not say).
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

// state is how the alert of a finding stands.
func (f finding) state(since, now time.Time) state {
	return state{
		Alert: f.alert, Queue: f.queue, Text: f.text, Value: round(f.value), Threshold: round(f.threshold),
		Since: since, Judged: now,
	}
}

// round leaves milliseconds, and tenths of a percent.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// forgotten decides about an alert that this process can't judge.
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

// passing decides about an alert whose condition does not hold at the moment.
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
