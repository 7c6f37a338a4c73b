package alerts

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

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

// logRaised logs a new alert. err is why there is no event; nil: there is one.
func (w *Watch) logRaised(ctx context.Context, s state, err error) {
	args := []any{"alert", s.Alert, "text", s.Text, "value", s.Value, "threshold", s.Threshold}
	if s.Queue != "" {
		args = append(args, "queue", s.Queue)
	}
	if err != nil {
		args = append(args, "error", err)
	}
	w.log.ErrorContext(ctx, "alert raised", args...)
}

func (w *Watch) logResolved(ctx context.Context, s state, now time.Time) {
	args := []any{"alert", s.Alert, "lasted", now.Sub(s.Since).Truncate(time.Millisecond)}
	if s.Queue != "" {
		args = append(args, "queue", s.Queue)
	}
	w.log.InfoContext(ctx, "alert resolved", args...)
}

// Standing returns the standing alerts, the oldest first: those of the instance, and those of this process
// that could not be written. While Redis is unreachable it returns the latter and an error of kind
// Unavailable.
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
		alerts = append(alerts, api.Alert{Alert: s.Alert, Queue: s.Queue, Text: s.Text, Value: s.Value,
			Threshold: s.Threshold, Since: s.Since})
	}
	slices.SortFunc(alerts, func(a, b api.Alert) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.Alert+a.Queue, b.Alert+b.Queue)
	})
	return alerts, err
}
