package app

import (
	"context"

	"github.com/postroom/postroom/webhooks"
)

// buildWebhooks builds the delivery of events to endpoints. Processes that deliver mail also deliver
// webhooks.
func (a *App) buildWebhooks(context.Context) error {
	c := a.cfg
	signing, err := signingSecrets(c, a.ring)
	if err != nil {
		return err
	}
	a.webhooks, err = webhooks.New(a.db, a.tasks, a.control, a.ring, webhooks.Options{
		Attempts: c.Webhooks.Attempts, Timeout: c.Webhooks.Timeout, Backoff: backoff(c),
		DisableAfter: orNever(c.Webhooks.DisableAfter),
		AllowPrivate: c.Webhooks.AllowPrivate, Secret: signing[0], OlderSecrets: signing[1:], Version: a.version,
		Logger: a.log, Metrics: a.metrics, Traces: a.traces,
		ServiceURL: func() string { return a.settings.Current().ServiceURL }, Implicit: a.implicitEndpoints,
		Match: func(ctx context.Context, q string, ids []string) (map[string]bool, error) {
			return a.documents.Match(ctx, q, ids) // a.documents is set later
		},
	})
	if err != nil {
		return err
	}
	if a.delivers {
		a.life.onFollow("webhooks", a.webhooks.Run)
	}
	return nil
}

// implicitEndpoints returns the endpoints named by settings and accounts. A deleted account has no endpoint.
func (a *App) implicitEndpoints(ctx context.Context, account string) ([]webhooks.Target, error) {
	var targets []webhooks.Target
	if w := a.settings.Current().Webhooks; w.Enabled && w.URL != "" && len(w.Events) > 0 {
		headers := make(map[string]string, len(w.Headers))
		for _, h := range w.Headers {
			headers[h.Key] = h.Value
		}
		targets = append(targets, webhooks.Target{ID: webhooks.SettingsID, URL: w.URL, Events: w.Events,
			Headers: headers, Broken: w.Broken})
	}
	if account == "" {
		return targets, nil
	}
	url, err := a.accounts.Webhooks(ctx, account)
	if err != nil || url == "" {
		return targets, ignoreNotFound(err)
	}
	return append(targets, webhooks.Target{ID: webhooks.AccountID(account), URL: url}), nil
}
