package alerts

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// state is a standing alert, as it is stored.
type state struct {
	api.Alert
	Judged time.Time `json:"judged"`         // when a process could last check whether it still holds
	Clear  time.Time `json:"clear,omitzero"` // since when it does not; zero if it holds
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

// decision is an alert's change, and its new state; for resolve, its last state.
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

func (f finding) state(since, now time.Time) state {
	return state{Alert: api.Alert{Alert: f.alert, Queue: f.queue, Text: f.text, Value: round(f.value),
		Threshold: round(f.threshold), Since: since}, Judged: now}
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

// lookTimeout ends a check while Redis hangs.
const lookTimeout = 10 * time.Second

// look checks everything once, and raises and resolves alerts.
func (w *Watch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	now, err := w.store.read(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return // this process is stopping
	}
	w.redisAway(ctx, now, err)
	if !now.at.IsZero() { // Redis answers, though it may refuse to write
		w.judge(ctx, now)
		w.standing = now.standing
	}
	w.metrics.show(w.standing, w.local)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unwritten = maps.Clone(w.local)
}

// judge decides about all findings and all standing alerts.
func (w *Watch) judge(ctx context.Context, now seen) {
	judged := map[string]bool{}
	for _, f := range w.findings(ctx, now.at) {
		judged[f.key()] = true
		w.settle(ctx, now, f.key(), decide(now.at, now.find(f.key()), &f, w.quiet()))
	}
	for _, key := range slices.Collect(maps.Keys(now.standing)) {
		if !judged[key] {
			w.settle(ctx, now, key, decide(now.at, now.find(key), nil, w.quiet()))
		}
	}
}

// quiet returns the time for which a condition must not hold before its alert is resolved.
func (w *Watch) quiet() time.Duration { return 4 * w.opts.Every }

// settle executes a decision. If another process was faster, that one logs it.
func (w *Watch) settle(ctx context.Context, now seen, key string, d decision) {
	_, here := w.local[key]
	if d.do == nothing {
		if here && d.over { // it came and went while nothing could be written
			w.logResolved(ctx, w.local[key], now.at)
			delete(w.local, key)
		}
		return
	}
	won, err := w.store.swap(ctx, key, now, d)
	switch {
	case err != nil:
		if d.do == raise && !here && !errors.Is(ctx.Err(), context.Canceled) {
			w.local[key] = d.next
			w.logRaised(ctx, d.next, err)
		}
		return
	case won && d.do == raise && !here:
		w.logRaised(ctx, d.next, nil)
	case won && d.do == resolve:
		w.logResolved(ctx, d.next, now.at)
	}
	delete(w.local, key)
	if d.do == resolve {
		delete(now.standing, key)
	} else {
		now.standing[key] = entry{state: d.next}
	}
}

// redisAway raises and resolves the alert that can't be written, in this process only.
func (w *Watch) redisAway(ctx context.Context, now seen, err error) {
	stood, here := w.local[redisAway]
	switch {
	case err != nil && !here:
		w.local[redisAway] = awayState(!now.at.IsZero(), time.Now())
		w.logRaised(ctx, w.local[redisAway], err)
	case err == nil && here:
		delete(w.local, redisAway)
		w.logResolved(ctx, stood, time.Now())
	}
}

// logRaised logs a new alert. err is why there is no event; nil if there is one.
func (w *Watch) logRaised(ctx context.Context, s state, err error) {
	args := append(s.named(), "text", s.Text, "value", s.Value, "threshold", s.Threshold)
	if err != nil {
		args = append(args, "error", err)
	}
	w.log.ErrorContext(ctx, "alert raised", args...)
}

func (w *Watch) logResolved(ctx context.Context, s state, now time.Time) {
	lasted := now.Sub(s.Since).Truncate(time.Millisecond)
	w.log.InfoContext(ctx, "alert resolved", append(s.named(), "lasted", lasted)...)
}

// named returns what the log calls an alert.
func (s state) named() []any {
	if s.Queue == "" {
		return []any{"alert", s.Alert.Alert}
	}
	return []any{"alert", s.Alert.Alert, "queue", s.Queue}
}

// Standing returns the standing alerts, oldest first: the instance's, and this process' alerts that could not
// be written. While Redis is unreachable, it returns the latter and an Unavailable error.
func (w *Watch) Standing(ctx context.Context) ([]api.Alert, error) {
	standing, err := w.store.standing(ctx)
	all := map[string]state{}
	w.mu.Lock()
	maps.Copy(all, w.unwritten)
	w.mu.Unlock()
	for key, e := range standing {
		all[key] = e.state
	}
	alerts := make([]api.Alert, 0, len(all))
	for _, s := range all {
		alerts = append(alerts, s.Alert)
	}
	slices.SortFunc(alerts, func(a, b api.Alert) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.Alert+a.Queue, b.Alert+b.Queue)
	})
	return alerts, err
}
