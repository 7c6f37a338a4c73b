package feedback

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
)

// reconciled is the provider whose events API is read, as metrics and [Feedback.Status] name it.
const reconciled = string(provider.Mailgun)

// Page is one answer of an events API, which has the events of the provider's webhooks.
type Page struct {
	Events  []provider.Event
	Ignored int       // understood, but not needed
	Broken  int       // unreadable, skipped
	Until   time.Time // time of the last event of the page; zero: it has none
	Next    string    // token of the next page; empty: this was the last
}

const (
	settled     = 5 * time.Minute  // younger events may still be joined by earlier ones
	overlap     = 30 * time.Minute // read again each time: providers list some events late
	firstLook   = 24 * time.Hour   // bounds the first reading
	longestLook = 72 * time.Hour   // bounds any reading: no provider keeps events much longer for free
	mostPages   = 10_000           // bounds one reading: an API with endless pages is broken
	ownerChecks = claimFor / 3
)

// keep reconciles at each interval, in one process at a time.
func (f *Feedback) keep(ctx context.Context) {
	defer func() { _ = f.owner.Release(ctx) }() // so that another process can go on at once
	for ctx.Err() == nil {
		held, err := f.owner.Claim(ctx)
		if err != nil && ctx.Err() == nil {
			f.log.Debug("the reconciliation can't be claimed", "error", err)
		}
		if held {
			f.reconcileIfDue(ctx)
		}
		redisdb.Pause(ctx, min(ownerChecks, f.opts.Every))
	}
}

// reconcileIfDue reconciles unless another run ended a short while ago.
func (f *Feedback) reconcileIfDue(ctx context.Context) {
	now := f.opts.Now()
	p, err := f.keys.progress(ctx)
	if err != nil || now.Sub(p.Ran) < f.opts.Every && !p.Ran.After(now) {
		return
	}
	err = f.reconcile(ctx, p.Position, now)
	if ctx.Err() != nil {
		return
	}
	text := ""
	if err != nil {
		text = message.Clip(err.Error(), 300)
		f.metrics.reconciled.WithLabelValues(reconciled, "failed").Inc()
		f.log.Warn("the reconciliation with a provider failed; the next one continues where it stopped", "provider",
			reconciled, "error", err)
	}
	if err := f.keys.note(ctx, "ran", f.opts.Now().UnixMilli(), "error", text); err != nil {
		f.log.Debug("the reconciliation can't be noted", "error", err)
	}
}

// reconcile reads the events since the position. The end of the range is the same for all pages; otherwise a
// busy provider would have no last page. The position follows what is in the inbox, page by page. It is never
// a page's token, because tokens expire.
func (f *Feedback) reconcile(ctx context.Context, position, now time.Time) error {
	to := now.Add(-settled)
	from := position.Add(-overlap)
	if oldest := now.Add(-longestLook); position.IsZero() {
		from = now.Add(-firstLook)
	} else if from.Before(oldest) {
		f.log.Warn("the events API was not read for a long time; earlier events are skipped", "provider",
			reconciled, "position", position, "from", oldest)
		from = oldest
	}
	if !from.Before(to) {
		return nil
	}
	var events, broken int64
	for page, n := "", 0; n < mostPages; n++ {
		got, err := f.opts.Mailgun.Events(ctx, from, to, page)
		if err != nil {
			return fmt.Errorf("read the events API of %s: %w", reconciled, err)
		}
		if err := f.takePage(ctx, got); err != nil {
			return err
		}
		events, broken = events+int64(len(got.Events)+got.Ignored), broken+int64(got.Broken)
		reached := to
		if got.Next != "" {
			reached = got.Until
		}
		if reached.After(position) && !reached.After(to) {
			position = reached
		}
		if err := f.keys.note(ctx, "position", position.UnixMilli(), "events", events, "broken",
			broken); err != nil {
			return err
		}
		f.metrics.behind.WithLabelValues(reconciled).Set(now.Sub(position).Seconds())
		if got.Next == "" {
			f.log.Info("read the events API of a provider", "provider", reconciled, "from", from, "to", to, "events",
				events, "broken", broken)
			return nil
		}
		page = got.Next
		if held, err := f.owner.Claim(ctx); err != nil || !held {
			return err // another process goes on
		}
	}
	return nil
}

// takePage puts the events of a page into the inbox.
func (f *Feedback) takePage(ctx context.Context, page Page) error {
	now := f.opts.Now()
	var entries []entry
	for _, e := range page.Events {
		if fact, ok := providerEntry(e, f.opts.StoreAddress, now); ok {
			entries = append(entries, fact)
		}
	}
	if err := f.put(ctx, entries); err != nil {
		return fmt.Errorf("take in the events of %s: %w", reconciled, err)
	}
	f.metrics.reconciled.WithLabelValues(reconciled, "read").Add(float64(len(page.Events)))
	f.metrics.reconciled.WithLabelValues(reconciled, "broken").Add(float64(page.Broken))
	return nil
}
