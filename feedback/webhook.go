package feedback

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
)

// Provider handles a provider's webhook: it verifies the request, reads it, and puts its facts into the
// inbox. They are in Redis when the error is nil.
//
// An unknown or unconfigured provider is a fault of kind NotFound. A request that is not proven is
// Unauthorized. A body that is not the provider's is Invalid or TooLarge. If Redis is unreachable or the
// inbox is full, the fault is Unavailable; for Brevo it is Limited, because Brevo drops the event after any
// other answer.
func (f *Feedback) Provider(ctx context.Context, name provider.Name, r provider.Request, now time.Time) (
	api.FeedbackReceipt, error) {
	receipt, err := f.take(ctx, name, r, now)
	if err == nil {
		return receipt, nil
	}
	if _, known := f.verifiers[name]; known {
		f.metrics.refused.WithLabelValues(string(name), refusalOf(err)).Inc()
		f.logRefused(name, err, now)
	}
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind == fault.Unavailable && name == provider.Brevo {
		later := fault.Wrap(err, fault.Limited, e.Code, "%s", e.Message)
		later.RetryAfter = max(e.RetryAfter, time.Minute)
		return api.FeedbackReceipt{}, later
	}
	return api.FeedbackReceipt{}, err
}

// Takes reports whether webhooks of a provider are taken here. A caller that reads a body for Provider asks
// first.
func (f *Feedback) Takes(name provider.Name) bool {
	_, ok := f.verifiers[name]
	return ok
}

// UnknownProvider is the fault of a provider whose webhooks are not taken.
func UnknownProvider() error {
	return fault.New(fault.NotFound, "ProviderUnknown", "No webhooks of a provider of this name are taken here")
}

func (f *Feedback) take(ctx context.Context, name provider.Name, r provider.Request, now time.Time) (
	api.FeedbackReceipt, error) {
	v, ok := f.verifiers[name]
	if !ok {
		return api.FeedbackReceipt{}, UnknownProvider()
	}
	if err := v.Verify(ctx, r, now); err != nil {
		return api.FeedbackReceipt{}, redisdb.Away(err)
	}
	r.KeepRaw = f.opts.KeepRaw
	batch, err := provider.Read(name, r)
	if err != nil {
		return api.FeedbackReceipt{}, err
	}
	if batch.Confirm != nil {
		return f.confirm(ctx, name, *batch.Confirm)
	}
	receipt, entries := f.sort(name, batch, now)
	return receipt, f.put(ctx, entries)
}

// sort returns the usable events as entries, and the receipt of all.
func (f *Feedback) sort(name provider.Name, batch provider.Batch, now time.Time) (api.FeedbackReceipt,
	[]entry) {
	receipt := api.FeedbackReceipt{Broken: len(batch.Broken)}
	var entries []entry
	add := func(e provider.Event, what string) {
		fact, ok := providerEntry(e, f.opts.StoreAddress, now)
		if ok {
			entries = append(entries, fact)
			return
		}
		receipt.Ignored++
		f.metrics.ignored.WithLabelValues(string(name), what).Inc()
	}
	for _, e := range batch.Events {
		add(e, string(e.Kind))
	}
	for _, i := range batch.Ignored {
		add(i.Event, i.Name)
	}
	receipt.Accepted = len(entries)
	if len(batch.Broken) > 0 {
		f.metrics.broken.WithLabelValues(string(name)).Add(float64(len(batch.Broken)))
		f.log.Warn("elements of a webhook can't be read", "provider", name, "elements", len(batch.Broken), "first",
			batch.Broken[0].Index, "error", batch.Broken[0].Err)
	}
	return receipt, entries
}

// logEvery bounds the log lines about a refused provider: anyone can send requests here.
const logEvery = time.Minute

// logRefused logs why a webhook is refused, for the operator who sets it up, at most once per logEvery.
func (f *Feedback) logRefused(name provider.Name, err error, now time.Time) {
	f.mu.Lock()
	last, logged := f.logged[name]
	if logged = logged && now.Sub(last) < logEvery && !now.Before(last); !logged {
		f.logged[name] = now
	}
	f.mu.Unlock()
	if !logged {
		f.log.Warn("a webhook of a provider is refused", "provider", name, "code", fault.CodeOf(err), "error", err)
	}
}

// refusalOf returns the reason of a refusal as a label.
func refusalOf(err error) string {
	switch fault.KindOf(err) {
	case fault.Unauthorized:
		return "unproven"
	case fault.Invalid:
		return "invalid"
	case fault.TooLarge:
		return "too_large"
	case fault.Unavailable:
		if fault.CodeOf(err) == "InboxFull" {
			return "full"
		}
		return "unavailable"
	}
	return "failed"
}
