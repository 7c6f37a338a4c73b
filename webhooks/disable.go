package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// disabled is the data of a webhookDisabled event.
type disabled struct {
	Endpoint     string     `json:"endpoint"`
	Host         string     `json:"host"` // its URL's; the rest of a URL may be a secret
	Reason       string     `json:"reason"`
	FailingSince *time.Time `json:"failingSince,omitempty"`
}

// disableReason returns why an endpoint must be switched off after an attempt, or "" if it need not. since is
// when it began to fail.
func (w *Webhooks) disableReason(d decision, since time.Time) string {
	switch {
	case d.gone:
		return "it answered 410 Gone"
	case d.outcome != delivered && !since.IsZero() && w.now().Sub(since) >= w.options.DisableAfter:
		return fmt.Sprintf("no delivery succeeded since %s", since.UTC().Format(time.RFC3339))
	}
	return ""
}

// disable switches an endpoint off in Redis, writes the event and logs it.
func (w *Webhooks) disable(ctx context.Context, t *target, reason string, since time.Time) error {
	now := w.now().UTC().Truncate(time.Millisecond)
	data := disabled{Endpoint: t.id, Reason: reason}
	if u, err := url.Parse(t.url); err == nil {
		data.Host = u.Host
	}
	if !since.IsZero() {
		data.FailingSince = &since
	}
	e, err := event.New(newID(), event.WebhookDisabled, endpointAccount(t.id), now, data)
	if err != nil {
		return err
	}
	line, err := e.Line()
	if err != nil {
		return err
	}
	off, err := json.Marshal(switchedOff{Reason: reason, At: now, URL: t.url})
	if err != nil {
		return fmt.Errorf("write why webhook endpoint %s is off: %w", t.id, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), soon)
	defer cancel()
	done, err := disableScript.Run(ctx, w.store.client, []string{offKey()}, disableArgs{t.id, off, t.url, line})
	if err != nil {
		return fmt.Errorf("switch off webhook endpoint %s: %w", t.id, err)
	}
	w.dir.reload(ctx)
	if done {
		w.metrics.disabled.Inc()
		w.log.Error("webhook endpoint switched off", "endpoint", t.id, "host", data.Host, "reason", reason)
	}
	return nil
}

// Enable switches an endpoint of settings or an account on again after it was switched off for failures.
// Call it when its webhook settings are saved. For endpoints created through the API use [Webhooks.Update].
func (w *Webhooks) Enable(ctx context.Context, id string) error {
	if err := w.store.refresh(ctx, id); err != nil {
		return redisdb.Away(err)
	}
	w.dir.reload(ctx)
	return nil
}
