package feedback

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/smtpsend"
)

const (
	settled     = 5 * time.Minute  // younger events may still be joined by earlier ones
	overlap     = 30 * time.Minute // read again each time: providers list some events late
	firstLook   = 24 * time.Hour   // bounds the first reading
	longestLook = 72 * time.Hour   // bounds any reading: no provider keeps events much longer for free
	mostPages   = 10_000           // bounds one reading: an API with endless pages is broken
	ownerChecks = claimFor / 3

	askedAgain  = 3               // times that a page is asked for after a refusal for now
	longestWait = 2 * time.Minute // before each; for a longer one the reading ends
)

// keep reconciles with each source at each interval, in one process at a time. Sources are read side by side:
// a slow one delays no other.
func (f *Feedback) keep(ctx context.Context) {
	defer func() { _ = f.owner.Release(ctx) }() // so that another process can continue immediately
	var reading sync.WaitGroup
	defer reading.Wait()
	for ctx.Err() == nil {
		held, err := f.owner.Claim(ctx)
		if err != nil && ctx.Err() == nil {
			f.log.Debug("the reconciliation can't be claimed", "error", err)
		}
		if held {
			f.readAll(ctx, &reading)
		}
		redisdb.Pause(ctx, min(ownerChecks, f.opts.Every))
	}
}

// readAll begins to read the sources that aren't being read.
func (f *Feedback) readAll(ctx context.Context, reading *sync.WaitGroup) {
	sources, err := f.opts.Sources(ctx)
	if err != nil {
		f.log.Debug("the events APIs can't be listed", "error", err)
		return
	}
	f.forgetOthers(sources)
	for _, s := range sources {
		if f.begin(s.Name()) {
			reading.Go(func() {
				defer f.end(s.Name())
				f.reconcileIfDue(ctx, s)
			})
		}
	}
}

// begin reports whether a source is not being read, and marks it as being read until end.
func (f *Feedback) begin(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reading[name] {
		return false
	}
	f.reading[name] = true
	return true
}

func (f *Feedback) end(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading[name] = false
}

// forgetOthers removes the metrics of sources that are gone.
func (f *Feedback) forgetOthers(sources []Source) {
	there := map[string]bool{}
	for _, s := range sources {
		there[s.Name()] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, busy := range f.reading {
		if !there[name] && !busy {
			f.metrics.forget(name)
			delete(f.reading, name)
		}
	}
}

// reconcileIfDue reconciles unless another run ended a short while ago, or the provider asked to wait.
func (f *Feedback) reconcileIfDue(ctx context.Context, s Source) {
	now, name := f.opts.Now(), s.Name()
	p, err := f.keys.progress(ctx, name)
	if err != nil || now.Sub(p.Ran) < f.opts.Every && !p.Ran.After(now) || now.Before(p.Resume) {
		return
	}
	err = f.reconcile(ctx, s, p.Position, now)
	if ctx.Err() != nil {
		return
	}
	text, resume := "", int64(0)
	if err != nil {
		text = message.Clip(err.Error(), 300)
		if after := asksToWait(err); after > 0 {
			resume = now.Add(after).UnixMilli()
		}
	}
	if err != nil && !errors.Is(err, ErrPaused) {
		f.metrics.reconciled.WithLabelValues(name, "failed").Inc()
		f.log.Warn("the reconciliation with a provider failed; the next one continues where it stopped", "source",
			name, "error", err)
	}
	if err := f.keys.note(ctx, name, "ran", f.opts.Now().UnixMilli(), "error", text, "resume",
		resume); err != nil {
		f.log.Debug("the reconciliation can't be noted", "error", err)
	}
}

// reconcile reads the events since the position. The end of the range is the same for all pages; otherwise a
// busy provider would have no last page. The position follows what is in the inbox, page by page. It is never
// a page's token, because tokens expire.
func (f *Feedback) reconcile(ctx context.Context, s Source, position, now time.Time) error {
	name, to := s.Name(), now.Add(-settled)
	from := position.Add(-overlap)
	if oldest := now.Add(-longestLook); position.IsZero() {
		from = now.Add(-firstLook)
	} else if from.Before(oldest) {
		f.log.Warn("the events API was not read for a long time; earlier events are skipped", "source", name,
			"position", position, "from", oldest)
		from = oldest
	}
	if !from.Before(to) {
		return nil
	}
	var events, broken int64
	note := ""
	for cursor, n := "", 0; n < mostPages; n++ {
		got, err := f.page(ctx, s, from, to, cursor)
		if err != nil {
			return fmt.Errorf("read the events API of %s: %w", name, err)
		}
		if err := f.takePage(ctx, name, got); err != nil {
			return err
		}
		events, broken = events+int64(len(got.Events)+got.Ignored), broken+int64(got.Broken)
		if got.Note != "" {
			note = message.Clip(got.Note, 300)
		}
		reached := to
		if got.Next != "" {
			reached = got.Until
		}
		if reached.After(position) && !reached.After(to) {
			position = reached
		}
		if err := f.keys.note(ctx, name, "position", position.UnixMilli(), "events", events, "broken", broken,
			"note", note); err != nil {
			return err
		}
		f.metrics.behind.WithLabelValues(name).Set(now.Sub(position).Seconds())
		if got.Next == "" {
			f.log.Info("read the events API of a provider", "source", name, "from", from, "to", to, "events", events,
				"broken", broken, "note", note)
			return nil
		}
		cursor = got.Next
		if held, err := f.owner.Claim(ctx); err != nil || !held {
			return err // another process continues
		}
	}
	return fmt.Errorf("read the events API of %s: it has no end after %d pages", name, mostPages)
}

// page asks for a page, and again if the provider refused it for now.
func (f *Feedback) page(ctx context.Context, s Source, from, to time.Time, cursor string) (Page, error) {
	for try := 0; ; try++ {
		got, err := s.Page(ctx, from, to, cursor)
		after := asksToWait(err)
		if err == nil || after == 0 || after > longestWait || try == askedAgain {
			return got, err
		}
		f.opts.Wait(ctx, after)
		if ctx.Err() != nil {
			return Page{}, ctx.Err()
		}
	}
}

// throttledFor is the wait after a refusal that names none.
const throttledFor = 10 * time.Second

// asksToWait returns the wait that a provider's error asks for, or 0 if a repeat is no use.
func asksToWait(err error) time.Duration {
	e, ok := errors.AsType[*smtpsend.Error](err)
	switch {
	case !ok:
		return 0
	case e.RetryAfter > 0:
		return e.RetryAfter
	case e.Verdict == smtpsend.Throttle:
		return throttledFor
	}
	return 0
}

// takePage puts the events of a page into the inbox.
func (f *Feedback) takePage(ctx context.Context, name string, page Page) error {
	now := f.opts.Now()
	var entries []entry
	for _, e := range page.Events {
		if fact, ok := providerEntry(e, f.opts.StoreAddress, now); ok {
			entries = append(entries, fact)
		}
	}
	if err := f.put(ctx, entries); err != nil {
		return fmt.Errorf("take in the events of %s: %w", name, err)
	}
	f.metrics.reconciled.WithLabelValues(name, "read").Add(float64(len(page.Events)))
	f.metrics.reconciled.WithLabelValues(name, "broken").Add(float64(page.Broken))
	return nil
}
