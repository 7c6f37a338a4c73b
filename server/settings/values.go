package settings

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/postroom/postroom/api"
)

// Values are the settings in force.
type Values struct {
	ServiceURL       string // public address; empty: none
	DeliveryAttempts int    // how often a message is tried in all, at least 1
	QueueKeep        int    // completed jobs that stay visible in the queues
	TrackOpens       bool   // opens are counted, of accounts and messages that don't say
	TrackClicks      bool   // clicks are, likewise
	Webhooks         Webhooks
}

// Webhooks is the instance's own webhook target, which exists beside the endpoints.
type Webhooks struct {
	URL     string             // empty: none
	Events  []string           // types of event; "*": all
	Headers []api.CustomHeader // added to each request; their values may be secrets
	Enabled bool               // false holds all back, whatever the URL
}

// Wants reports whether an event of this type goes to the target.
func (w Webhooks) Wants(eventType string) bool {
	return w.Enabled && w.URL != "" && (slices.Contains(w.Events, "*") || slices.Contains(w.Events, eventType))
}

// LogValue names the headers without their values.
func (w Webhooks) LogValue() slog.Value {
	names := make([]string, len(w.Headers))
	for i, h := range w.Headers {
		names[i] = h.Key
	}
	return slog.GroupValue(slog.String("url", w.URL), slog.Any("events", w.Events), slog.Any("headers", names),
		slog.Bool("enabled", w.Enabled))
}

// String is LogValue as text.
func (w Webhooks) String() string { return w.LogValue().String() }

// settings gives the values as answers show them.
func (v Values) settings() api.Settings {
	return api.Settings{
		Webhooks: &v.Webhooks.URL, WebhookEvents: &v.Webhooks.Events, WebhooksCustomHeaders: &v.Webhooks.Headers,
		WebhooksEnabled: &v.Webhooks.Enabled, ServiceURL: &v.ServiceURL, DeliveryAttempts: &v.DeliveryAttempts,
		QueueKeep: &v.QueueKeep, TrackOpens: &v.TrackOpens, TrackClicks: &v.TrackClicks,
	}
}

// The settings' names, in the API and in Redis.
const (
	nameWebhooks        = "webhooks"
	nameWebhookEvents   = "webhookEvents"
	nameCustomHeaders   = "webhooksCustomHeaders"
	nameWebhooksEnabled = "webhooksEnabled"
	nameServiceURL      = "serviceUrl"
	nameAttempts        = "deliveryAttempts"
	nameQueueKeep       = "queueKeep"
	nameTrackOpens      = "trackOpens"
	nameTrackClicks     = "trackClicks"
)

// field is a setting as Redis has it.
type field struct {
	name  string
	value []byte // JSON
}

// encode gives the settings that a request has as Redis gets them.
func (s *Settings) encode(req api.Settings) ([]field, error) {
	var fields []field
	add := func(name string, set bool, value any) error {
		if !set {
			return nil
		}
		text, err := json.Marshal(value)
		if err == nil && name == nameCustomHeaders {
			text, err = s.sealed(text)
		}
		if err != nil {
			return fmt.Errorf("encode setting %s: %w", name, err)
		}
		fields = append(fields, field{name, text})
		return nil
	}
	for _, err := range []error{
		add(nameWebhooks, req.Webhooks != nil, req.Webhooks),
		add(nameWebhookEvents, req.WebhookEvents != nil, req.WebhookEvents),
		add(nameCustomHeaders, req.WebhooksCustomHeaders != nil, req.WebhooksCustomHeaders),
		add(nameWebhooksEnabled, req.WebhooksEnabled != nil, req.WebhooksEnabled),
		add(nameServiceURL, req.ServiceURL != nil, req.ServiceURL),
		add(nameAttempts, req.DeliveryAttempts != nil, req.DeliveryAttempts),
		add(nameQueueKeep, req.QueueKeep != nil, req.QueueKeep),
		add(nameTrackOpens, req.TrackOpens != nil, req.TrackOpens),
		add(nameTrackClicks, req.TrackClicks != nil, req.TrackClicks),
	} {
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// decode lays what Redis has over the defaults. Names it does not know belong to a newer version and stay
// untouched.
func (s *Settings) decode(stored map[string]string) (Values, error) {
	v := s.defaults
	into := map[string]any{
		nameWebhooks: &v.Webhooks.URL, nameWebhooksEnabled: &v.Webhooks.Enabled, nameServiceURL: &v.ServiceURL,
		nameAttempts: &v.DeliveryAttempts, nameQueueKeep: &v.QueueKeep,
		nameTrackOpens: &v.TrackOpens, nameTrackClicks: &v.TrackClicks,
	}
	// These two get slices of their own: what is decoded must not be written over the defaults.
	var events []string
	var headers []api.CustomHeader
	into[nameWebhookEvents], into[nameCustomHeaders] = &events, &headers
	for name, text := range stored {
		target, known := into[name]
		if !known {
			continue
		}
		value, err := []byte(text), error(nil)
		if name == nameCustomHeaders {
			value, err = s.opened(value)
		}
		if err == nil {
			err = json.Unmarshal(value, target)
		}
		if err != nil {
			return Values{}, fmt.Errorf("read setting %s: %w", name, err)
		}
	}
	if _, ok := stored[nameWebhookEvents]; ok {
		v.Webhooks.Events = events
	}
	if _, ok := stored[nameCustomHeaders]; ok {
		v.Webhooks.Headers = headers
	}
	return v, nil
}

// headersPlace names where the sealed headers belong, and the only place where they open.
const headersPlace = "settings:" + nameCustomHeaders

func (s *Settings) sealed(plain []byte) ([]byte, error) {
	return json.Marshal(s.ring.Seal(plain, headersPlace))
}

func (s *Settings) opened(value []byte) ([]byte, error) {
	var sealed string
	if err := json.Unmarshal(value, &sealed); err != nil {
		return nil, err
	}
	return s.ring.Open(sealed, headersPlace)
}
