package webhooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb/seal"
)

const masked = "******" // stands for a secret value in answers; sent back in an edit, it means "as it was"

// endpoint is a webhook endpoint as it is stored, in the hash of endpoints.
type endpoint struct {
	ID          string    `json:"id"`
	URL         string    `json:"url"`
	Events      []string  `json:"events,omitempty"`   // none: all
	Accounts    []string  `json:"accounts,omitempty"` // none: all
	RateLimit   int       `json:"rateLimit,omitempty"`
	Enabled     bool      `json:"enabled"`
	Description string    `json:"description,omitempty"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`
	Sealed      string    `json:"sealed"` // secrets
}

// secrets is the part of an endpoint that is sealed. Header values are in it, for they often are credentials.
type secrets struct {
	Secret   string            `json:"secret"`
	Previous string            `json:"previous,omitempty"` // signs beside Secret until Until
	Until    time.Time         `json:"until,omitzero"`
	Headers  map[string]string `json:"headers,omitempty"`
}

// switchedOff is what is kept of an endpoint that failed for too long, or said that it is gone. It holds for one URL: an endpoint that
// moves starts afresh.
type switchedOff struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	URL    string    `json:"url"`
}

// keys gives the keys that sign now: the secret's, and the one before it for a day.
func (s secrets) keys(now time.Time) [][]byte {
	var keys [][]byte
	for _, secret := range []string{s.Secret, s.Previous} {
		if secret == s.Previous && !now.Before(s.Until) {
			continue
		}
		if key, err := parseSecret(secret); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// apply writes a request over an endpoint. Absent fields take their defaults, except what a client can't know or rarely means to
// change: the secret, masked headers, and whether it is enabled.
func (e *endpoint) apply(r api.EndpointRequest, s *secrets, now time.Time) {
	e.URL, e.RateLimit, e.Description = r.URL, r.RateLimit, r.Description
	e.Events, e.Accounts = filter(r.Events), slices.Compact(slices.Sorted(slices.Values(r.Accounts)))
	if r.Enabled != nil {
		e.Enabled = *r.Enabled
	}
	headers := make(map[string]string, len(r.Headers))
	for name, value := range r.Headers {
		if value == masked {
			value = s.Headers[name]
		}
		headers[name] = value
	}
	s.Headers = headers
	if r.Secret != "" && r.Secret != s.Secret && r.Secret != maskSecret(s.Secret) {
		if s.Secret != "" {
			s.Previous, s.Until = s.Secret, now.Add(rotation)
		}
		s.Secret = r.Secret
	}
	e.Updated = now.UTC().Truncate(time.Millisecond)
}

// filter gives the event types asked for in order, each once; none for all.
func filter(events []string) []string {
	if slices.Contains(events, "*") {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(events)))
}

// validate reports all that is wrong with a request, at once.
func validate(r api.EndpointRequest) error {
	var wrong []fault.Field
	say := func(key, format string, args ...any) {
		wrong = append(wrong, fault.Field{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	if err := CheckURL(r.URL); err != nil {
		say("url", "%s", err)
	}
	for i, name := range r.Events {
		if name != "*" && !slices.Contains(event.Types(), event.Type(name)) {
			say(fmt.Sprintf("events[%d]", i), "is not an event type")
		}
	}
	for name, value := range r.Headers {
		if err := checkHeader(name, value); err != nil {
			say("headers."+name, "%s", err)
		}
	}
	if r.Secret != "" && r.Secret != maskSecret(r.Secret) {
		if _, err := parseSecret(r.Secret); err != nil {
			say("secret", "%s", err)
		}
	}
	if r.RateLimit < 0 || r.RateLimit > 10_000 {
		say("rateLimit", "must be 1 to 10000 requests a second")
	}
	return fault.InvalidFields(wrong)
}

// checkHeader refuses headers that are ours to set, and what can't stand in a header.
func checkHeader(name, value string) error {
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("is not a header name")
	case reserved(name):
		return fmt.Errorf("is set by Postroom")
	case !httpguts.ValidHeaderFieldValue(value):
		return fmt.Errorf("holds characters that a header can't")
	}
	return nil
}

// reserved says whether a header is ours alone: the signatures, what they cover, and what frames the request.
func reserved(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "host", "content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect":
		return true
	}
	return strings.HasPrefix(name, "webhook-") || strings.HasPrefix(name, "x-ee-wh-") || strings.HasPrefix(name, "proxy-")
}

// view is an endpoint as answers show it: no secret in it is readable.
func (e endpoint) view(s secrets, off *switchedOff, failingSince *time.Time) api.Endpoint {
	v := api.Endpoint{
		ID: e.ID, URL: e.URL, Events: e.Events, Accounts: e.Accounts, Secret: maskSecret(s.Secret), RateLimit: e.RateLimit,
		Enabled: e.Enabled, Description: e.Description, Created: e.Created, Updated: e.Updated, FailingSince: failingSince,
	}
	if v.Events == nil {
		v.Events = []string{"*"}
	}
	if v.Accounts == nil {
		v.Accounts = []string{}
	}
	if len(s.Headers) > 0 {
		v.Headers = make(map[string]string, len(s.Headers))
		for name := range s.Headers {
			v.Headers[name] = masked
		}
	}
	if off != nil {
		v.Enabled, v.DisabledReason = false, off.Reason
	}
	return v
}

// seal closes the secrets into the endpoint.
func (e *endpoint) seal(ring *seal.Ring, s secrets) error {
	plain, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write secrets of webhook endpoint %s: %w", e.ID, err)
	}
	e.Sealed = ring.Seal(plain, e.place())
	return nil
}

// open reads the secrets of the endpoint.
func (e *endpoint) open(ring *seal.Ring) (secrets, error) {
	var s secrets
	plain, err := ring.Open(e.Sealed, e.place())
	if err != nil {
		return s, fmt.Errorf("open secrets of webhook endpoint %s: %w", e.ID, err)
	}
	if err := json.Unmarshal(plain, &s); err != nil {
		return s, fmt.Errorf("read secrets of webhook endpoint %s: %w", e.ID, err)
	}
	return s, nil
}

// place binds the secrets to their endpoint, so that they can't be moved to another one in Redis.
func (e *endpoint) place() string { return "webhook-endpoint:" + e.ID }
