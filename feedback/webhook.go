package feedback

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
)

// Origin identifies the sender of a webhook.
type Origin struct {
	Provider provider.Name
	Gateway  string // whose own webhook it is; empty for the settings' webhook
}

// String is "postmark", or "postmark/shop" for a gateway.
func (o Origin) String() string { return strings.TrimSuffix(string(o.Provider)+"/"+o.Gateway, "/") }

// Provider handles a provider's webhook: it verifies the request, reads it, and puts its facts into the
// inbox. They are in Redis when the error is nil.
//
// It returns NotFound for an unknown or unconfigured provider, an unknown gateway, or another provider's
// gateway. Unproven requests are Unauthorized. A body that is not the provider's is Invalid or TooLarge. If
// Redis is unreachable or the inbox is full, it returns Unavailable, but Limited for Brevo, because Brevo
// drops the event after any other answer.
func (f *Feedback) Provider(ctx context.Context, from Origin, r provider.Request, now time.Time) (
	api.FeedbackReceipt, error) {
	v, err := f.verifier(ctx, from)
	if err != nil {
		return api.FeedbackReceipt{}, from.later(err)
	}
	receipt, err := f.take(ctx, v, from.Provider, r, now)
	if err == nil {
		return receipt, nil
	}
	f.metrics.refused.WithLabelValues(string(from.Provider), refusalOf(err)).Inc()
	f.logRefused(from, err, now)
	return api.FeedbackReceipt{}, from.later(err)
}

// later makes the provider come again after an error that is ours: for Brevo it has to be Limited.
func (o Origin) later(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Kind != fault.Unavailable || o.Provider != provider.Brevo {
		return err
	}
	limited := fault.Wrap(err, fault.Limited, e.Code, "%s", e.Message)
	limited.RetryAfter = max(e.RetryAfter, time.Minute)
	return limited
}

// Takes returns nil if webhooks of an origin are accepted here, and otherwise Provider's error. A caller that
// reads a body for Provider asks first.
func (f *Feedback) Takes(ctx context.Context, from Origin) error {
	_, err := f.verifier(ctx, from)
	return from.later(err)
}

// unknownProvider is the error for an unacceptable webhook. It doesn't show whether the gateway exists.
func unknownProvider() error {
	return fault.New(fault.NotFound, "ProviderUnknown", "Postroom doesn't accept webhooks from a provider with this name")
}

// hook proves a gateway's webhooks. Its verifier is kept, because it keeps certificates.
type hook struct {
	name     provider.Name
	secret   string
	verifier *provider.Verifier
}

func (f *Feedback) newVerifier(name provider.Name, secrets ...string) (*provider.Verifier, error) {
	return provider.New(name, provider.Options{Secrets: secrets, Transport: f.opts.Transport, Bind: f.bind})
}

// verifier returns what proves the webhooks of an origin.
func (f *Feedback) verifier(ctx context.Context, from Origin) (*provider.Verifier, error) {
	if from.Gateway == "" {
		if v := f.verifiers[from.Provider]; v != nil {
			return v, nil
		}
		return nil, unknownProvider()
	}
	if f.opts.Hook == nil {
		return nil, unknownProvider()
	}
	name, secret, err := f.opts.Hook(ctx, from.Gateway)
	switch {
	case fault.Is(err, fault.NotFound), err == nil && (name != from.Provider || secret == ""):
		return nil, unknownProvider()
	case err != nil:
		return nil, redisdb.Away(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.hooks[from.Gateway]; h.name == name && h.secret == secret {
		return h.verifier, nil
	}
	v, err := f.newVerifier(name, secret)
	if err == nil {
		f.hooks[from.Gateway] = hook{name, secret, v}
	}
	return v, err
}

func (f *Feedback) take(ctx context.Context, v *provider.Verifier, name provider.Name, r provider.Request,
	now time.Time) (api.FeedbackReceipt, error) {
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
func (f *Feedback) logRefused(from Origin, err error, now time.Time) {
	f.mu.Lock()
	last, logged := f.logged[from.String()]
	if logged = logged && now.Sub(last) < logEvery && !now.Before(last); !logged {
		f.logged[from.String()] = now
	}
	f.mu.Unlock()
	if !logged {
		f.log.Warn("a webhook of a provider is refused", "provider", from.String(), "code", fault.CodeOf(err),
			"error", err)
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
