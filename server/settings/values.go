package settings

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Values are the settings in force.
type Values struct {
	ServiceURL       string   // public address; empty if none
	DeliveryAttempts int      // attempts of a message, at least 1
	QueueKeep        int      // completed jobs that stay visible in the queues
	TrackOpens       bool     // default of accounts and messages: opens are counted
	TrackClicks      bool     // likewise of clicks
	BlockedLinks     []string // hosts and ids of messages to which no counted link leads
	Webhooks         Webhooks
}

// Webhooks is the instance's webhook target, in addition to the endpoints.
type Webhooks struct {
	URL     string             // empty if none
	Events  []string           // types of event; "*": all
	Headers []api.CustomHeader // added to each request; their values may be secrets
	Enabled bool               // if false, nothing is sent, whatever the URL
	Broken  error              // why the headers don't open; nil if they do
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

// settings returns the values as in answers. Its fields point to v's.
func (v *Values) settings() api.Settings {
	return api.Settings{
		Webhooks: &v.Webhooks.URL, WebhookEvents: &v.Webhooks.Events, WebhooksCustomHeaders: &v.Webhooks.Headers,
		WebhooksEnabled: &v.Webhooks.Enabled, ServiceURL: &v.ServiceURL, DeliveryAttempts: &v.DeliveryAttempts,
		QueueKeep: &v.QueueKeep, TrackOpens: &v.TrackOpens, TrackClicks: &v.TrackClicks,
		BlockedLinks: &v.BlockedLinks,
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
	nameBlockedLinks    = "blockedLinks"
)

// field is a setting of a request, or of Redis.
type field struct {
	name string
	at   any // pointer to the field of api.Settings
}

// fieldsOf returns the fields of v, in the order of the API.
func fieldsOf(v *api.Settings) []field {
	return []field{
		{nameWebhooks, &v.Webhooks}, {nameWebhookEvents, &v.WebhookEvents},
		{nameCustomHeaders, &v.WebhooksCustomHeaders}, {nameWebhooksEnabled, &v.WebhooksEnabled},
		{nameServiceURL, &v.ServiceURL}, {nameAttempts, &v.DeliveryAttempts}, {nameQueueKeep, &v.QueueKeep},
		{nameTrackOpens, &v.TrackOpens}, {nameTrackClicks, &v.TrackClicks},
		{nameBlockedLinks, &v.BlockedLinks},
	}
}

// encode returns the names of the settings in a request, and the pairs of name and JSON that Redis gets. url
// is where webhooks go before it.
func (s *Settings) encode(req api.Settings, url string) (names, pairs []string, err error) {
	if req.Webhooks != nil {
		url = *req.Webhooks
	}
	names = []string{}
	for _, f := range fieldsOf(&req) {
		text, err := json.Marshal(f.at)
		if string(text) == "null" {
			continue
		}
		if err == nil && f.name == nameCustomHeaders {
			text, err = s.sealed(text, url)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("encode setting %s: %w", f.name, err)
		}
		names, pairs = append(names, f.name), append(pairs, f.name, string(text))
	}
	return names, pairs, nil
}

// decode returns the defaults, replaced by the settings of Redis. Unknown names belong to a newer version and
// stay untouched.
func (s *Settings) decode(stored map[string]string) (Values, error) {
	v := s.defaults
	v.Webhooks.Events, v.Webhooks.Headers = slices.Clone(v.Webhooks.Events), slices.Clone(v.Webhooks.Headers)
	set := v.settings()
	for _, f := range fieldsOf(&set) {
		text, ok := stored[f.name]
		if !ok {
			continue
		}
		value, err := []byte(text), error(nil)
		if f.name == nameCustomHeaders {
			value, err = s.opened(value, v.Webhooks.URL)
			if errors.Is(err, seal.ErrDamaged) || errors.Is(err, seal.ErrUnknownKey) {
				v.Webhooks.Broken = fmt.Errorf("open %s (they or webhooks were changed in Redis, "+
					"or the secret of this instance; enter them again): %w", nameCustomHeaders, err)
				continue
			}
		}
		if err == nil {
			err = json.Unmarshal(value, f.at)
		}
		if err != nil {
			return Values{}, fmt.Errorf("read setting %s: %w", f.name, err)
		}
	}
	return v, nil
}

// headersPlace is the name that the sealed headers are bound to: the address that they are sent to is part of
// it. Webhooks come before the headers in [fieldsOf].
func headersPlace(url string) string {
	return fmt.Sprintf("settings:%s url=%q", nameCustomHeaders, url)
}

func (s *Settings) sealed(plain []byte, url string) ([]byte, error) {
	return json.Marshal(s.ring.Seal(plain, headersPlace(url)))
}

func (s *Settings) opened(value []byte, url string) ([]byte, error) {
	var sealed string
	if err := json.Unmarshal(value, &sealed); err != nil {
		return nil, err
	}
	return s.ring.Open(sealed, headersPlace(url))
}

// without are EmailEngine's settings (v2.79) that have no meaning here: mailbox settings, and settings that
// Postroom has in its configuration, with each account, or not at all.
//
//go:embed ignored.txt
var without string

// mailboxEvents are the types of event of EmailEngine that never happen here.
//
//go:embed events.txt
var mailboxEvents string

// Ignored reports whether a name is of a setting of EmailEngine without meaning here.
func Ignored(name string) bool { return slices.Contains(strings.Fields(without), name) }

// Find returns the settings that a query names; all if it is empty. Invalid names every unknown one.
func (s *Settings) Find(ctx context.Context, query url.Values) (found api.SettingsFound, err error) {
	query.Del("access_token")
	all, err := s.Get(ctx)
	if err != nil || len(query) == 0 {
		return api.SettingsFound{Settings: all}, err
	}
	var wrong faults
	from, to := fieldsOf(&all), fieldsOf(&found.Settings)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		i := slices.IndexFunc(from, func(f field) bool { return f.name == name })
		switch {
		case query.Get(name) == "false":
		case i >= 0:
			reflect.ValueOf(to[i].at).Elem().Set(reflect.ValueOf(from[i].at).Elem())
		case name == "eventTypes":
			found.EventTypes = eventTypes()
		case Ignored(name):
			found.Ignored = append(found.Ignored, name)
		default:
			wrong.Add(name, "is not allowed")
		}
	}
	return found, fault.InvalidFields(wrong.Fields)
}
