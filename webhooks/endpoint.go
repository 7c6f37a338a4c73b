package webhooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

const masked = "******" // replaces a secret value in responses; in an edit it means "unchanged"

// endpoint is a webhook endpoint as it is stored, in the hash of endpoints.
type endpoint struct {
	ID          string    `json:"id"`
	URL         string    `json:"url"`
	Events      []string  `json:"events,omitempty"`   // empty for all
	Accounts    []string  `json:"accounts,omitempty"` // empty for all
	RateLimit   int       `json:"rateLimit,omitempty"`
	Enabled     bool      `json:"enabled"`
	Description string    `json:"description,omitempty"`
	Created     time.Time `json:"created"`
	From        int64     `json:"from"` // Unix milliseconds of Redis: it gets the events since
	Updated     time.Time `json:"updated"`
	Sealed      string    `json:"sealed"` // secrets
}

// secrets is the sealed part of an endpoint. It includes header values, because they often are credentials.
type secrets struct {
	Secret  string            `json:"secret"`
	Older   []olderSecret     `json:"older,omitempty"` // sign in addition to Secret, newest first
	Headers map[string]string `json:"headers,omitempty"`
}

// olderSecret is a secret that was replaced, and signs too until its receiver knows the new one.
type olderSecret struct {
	Secret string    `json:"secret"`
	Until  time.Time `json:"until"`
}

// mostOlder is how many replaced secrets of an endpoint may sign together: each makes requests longer.
const mostOlder = 3

// switchedOff is the record of an endpoint that failed for too long or returned 410. It is valid for one URL:
// an endpoint with a new URL starts over.
type switchedOff struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	URL    string    `json:"url"`
}

// keys returns the keys that sign now: the secret's, and for a while older ones'.
func (s secrets) keys(now time.Time) [][]byte {
	var keys [][]byte
	for _, one := range append([]olderSecret{{Secret: s.Secret}}, s.signing(now)...) {
		if key, err := parseSecret(one.Secret); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// signing returns the older secrets that sign now, too.
func (s secrets) signing(now time.Time) []olderSecret {
	var older []olderSecret
	for _, one := range s.Older {
		if now.Before(one.Until) {
			older = append(older, one)
		}
	}
	return older
}

// until returns when the last of the older secrets ceases to sign; nil means none signs.
func (s secrets) until(now time.Time) *time.Time {
	var last *time.Time
	for _, one := range s.signing(now) {
		if last == nil || one.Until.After(*last) {
			last = &one.Until
		}
	}
	return last
}

// replace makes another secret sign. The one before signs too for the overlap.
func (s *secrets) replace(secret string, overlap time.Duration, now time.Time) {
	older := s.signing(now)
	if s.Secret != "" && overlap > 0 {
		until := now.Add(overlap).UTC().Truncate(time.Millisecond)
		older = append([]olderSecret{{Secret: s.Secret, Until: until}}, older...)
	}
	s.Secret, s.Older = secret, older
}

// hasRoom returns an error if as many older secrets sign as may. To drop one would lock out its receiver.
func (s secrets) hasRoom(now time.Time) error {
	older := s.signing(now)
	if len(older) < mostOlder {
		return nil
	}
	return fault.New(fault.Conflict, "TooManySecrets", "%d earlier secrets are still valid, the first "+
		"until %s. Wait, or rotate with overlap 0", len(older), older[len(older)-1].Until.Format(time.RFC3339))
}

// renews reports whether a request has another secret.
func (s secrets) renews(r api.EndpointRequest) bool {
	return r.Secret != "" && r.Secret != s.Secret && r.Secret != maskSecret(s.Secret)
}

// apply writes a request over an endpoint. Absent fields take their defaults, except the secret, masked
// headers and the enabled flag: a client cannot know these or rarely means to change them.
func (e *endpoint) apply(r api.EndpointRequest, s *secrets, now time.Time) {
	moved := e.URL != r.URL
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
	if s.renews(r) {
		s.replace(r.Secret, rotation, now)
	}
	if moved {
		s.Older = nil
	}
	e.Updated = now.UTC().Truncate(time.Millisecond)
}

// stays returns an error if a request sends secrets elsewhere without containing them, because people who may
// change an endpoint may not know them. A URL with its path is one place: the paths of a host may belong to
// different people.
func (e *endpoint) stays(r api.EndpointRequest, s secrets) error {
	if e.URL == r.URL && s.Secret != "" {
		return nil
	}
	const again = "must be entered again when url changes"
	var wrong fault.Fields
	if r.Secret == "" || r.Secret == maskSecret(r.Secret) {
		wrong.Add("secret", again)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if r.Headers[name] == masked {
			wrong.Add("headers."+name, again)
		}
	}
	return fault.InvalidFields(wrong)
}

// filter returns the requested event types in order, each once; none means all.
func filter(events []string) []string {
	if slices.Contains(events, "*") {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(events)))
}

// validate returns all invalid fields of a request in one error.
func validate(r api.EndpointRequest) error {
	var wrong fault.Fields
	if err := CheckURL(r.URL); err != nil {
		wrong.Add("url", "%s", err)
	}
	for i, name := range r.Events {
		if name != "*" && !slices.Contains(event.Types(), event.Type(name)) {
			wrong.Add(fmt.Sprintf("events[%d]", i), "isn't an event type")
		}
	}
	for name, value := range r.Headers {
		if err := checkHeader(name, value); err != nil {
			wrong.Add("headers."+name, "%s", err)
		}
	}
	if r.Secret != "" && r.Secret != maskSecret(r.Secret) {
		if _, err := parseSecret(r.Secret); err != nil {
			wrong.Add("secret", "%s", err)
		}
	}
	if r.RateLimit < 0 || r.RateLimit > 10_000 {
		wrong.Add("rateLimit", "must be 1 to 10000 requests a second")
	}
	return fault.InvalidFields(wrong)
}

// checkHeader refuses headers that Postroom sets and invalid headers.
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

// reserved reports whether only Postroom may set a header: the signatures, the headers that they cover, and
// the framing of the request.
func reserved(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "host", "content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "te",
		"trailer", "upgrade", "expect":
		return true
	}
	return strings.HasPrefix(name, "webhook-") || strings.HasPrefix(name, "x-ee-wh-") ||
		strings.HasPrefix(name, "proxy-")
}

// view returns an endpoint as a type of the API, with its secrets masked.
func (e endpoint) view(s secrets, off *switchedOff, failingSince *time.Time, now time.Time) api.Endpoint {
	v := api.Endpoint{
		ID: e.ID, URL: e.URL, Events: e.Events, Accounts: e.Accounts, Secret: maskSecret(s.Secret),
		RateLimit: e.RateLimit,
		Enabled:   e.Enabled, Description: e.Description, Created: e.Created, Updated: e.Updated,
		FailingSince: failingSince, OldSecretUntil: s.until(now),
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

// seal seals the secrets into the endpoint.
func (e *endpoint) seal(ring *seal.Ring, s secrets) error {
	plain, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write secrets of webhook endpoint %s: %w", e.ID, err)
	}
	e.Sealed = ring.Seal(plain, e.place())
	return nil
}

// open opens the secrets of the endpoint.
func (e *endpoint) open(ring *seal.Ring) (secrets, error) {
	var s secrets
	plain, err := ring.Open(e.Sealed, e.place())
	if errors.Is(err, seal.ErrDamaged) {
		err = fmt.Errorf("its url or its secrets were changed in Redis; enter them again: %w", err)
	}
	if err != nil {
		return s, fmt.Errorf("open secrets of webhook endpoint %s: %w", e.ID, err)
	}
	if err := json.Unmarshal(plain, &s); err != nil {
		return s, fmt.Errorf("read secrets of webhook endpoint %s: %w", e.ID, err)
	}
	return s, nil
}

// place is the context that the secrets are sealed with. It binds them to their endpoint and its URL, so that
// no one who writes to Redis can have them sent elsewhere.
func (e *endpoint) place() string { return fmt.Sprintf("webhook-endpoint:%s url=%q", e.ID, e.URL) }
