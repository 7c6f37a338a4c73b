package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Create creates an endpoint. Only this result holds its secret.
func (w *Webhooks) Create(ctx context.Context, r api.EndpointRequest) (api.Endpoint, error) {
	if err := validate(r); err != nil {
		return api.Endpoint{}, err
	}
	clock, err := w.db.Client().Time(ctx).Result()
	if err != nil {
		return api.Endpoint{}, redisdb.Away(fmt.Errorf("ask Redis for the time of a new endpoint: %w", err))
	}
	now := w.now().UTC().Truncate(time.Millisecond)
	e := endpoint{ID: newID(), Enabled: true, Created: now, From: clock.UnixMilli()}
	r.Secret = cmp.Or(r.Secret, newSecret())
	var s secrets
	e.apply(r, &s, now)
	if err := w.write(ctx, "", &e, s, false); err != nil {
		return api.Endpoint{}, err
	}
	v := e.view(s, nil, nil, now)
	v.Secret = s.Secret
	return v, nil
}

// Update changes an endpoint. Absent fields take their defaults, with these exceptions. An absent secret, the
// enabled flag, and a header whose value is sent masked stay as they are, but only under the same URL. A new
// URL needs them again, and so do secrets that don't open. After a new secret the old one is valid for 24
// hours, if the URL stays. Setting enabled, or a new URL, ends a switch-off by Postroom.
func (w *Webhooks) Update(ctx context.Context, id string, r api.EndpointRequest) (api.Endpoint, error) {
	if err := validate(r); err != nil {
		return api.Endpoint{}, err
	}
	return w.change(ctx, id, func(e *endpoint, s *secrets, lost bool) (fresh bool, err error) {
		if lost {
			*s = secrets{}
		}
		return w.replace(e, s, r)
	})
}

// replace writes a valid request over an endpoint. It reports whether the endpoint starts over.
func (w *Webhooks) replace(e *endpoint, s *secrets, r api.EndpointRequest) (fresh bool, err error) {
	if err := e.stays(r, *s); err != nil {
		return false, err
	}
	now := w.now()
	if e.URL == r.URL && s.renews(r) {
		if err := s.hasRoom(now); err != nil {
			return false, err
		}
	}
	fresh = e.URL != r.URL || r.Enabled != nil && *r.Enabled
	e.apply(r, s, now)
	return fresh, nil
}

// change changes an endpoint by do, which is called again if others changed it in between. lost means that
// its secrets don't open. do reports whether the endpoint starts over: not failing, and not switched off.
func (w *Webhooks) change(ctx context.Context, id string,
	do func(e *endpoint, s *secrets, lost bool) (fresh bool, err error)) (api.Endpoint, error) {
	for range 5 {
		before, e, s, err := w.load(ctx, id)
		lost := errors.Is(err, seal.ErrDamaged) || errors.Is(err, seal.ErrUnknownKey)
		if err != nil && !lost {
			return api.Endpoint{}, err
		}
		fresh, err := do(&e, &s, lost)
		if err == nil {
			err = w.write(ctx, before, &e, s, fresh)
		}
		if fault.CodeOf(err) == codeChanged {
			continue
		}
		if err != nil {
			return api.Endpoint{}, err
		}
		return w.Endpoint(ctx, id)
	}
	return api.Endpoint{}, fault.New(fault.Conflict, codeChanged,
		"Other requests are changing the webhook endpoint. Try again")
}

// Delete removes an endpoint and reports whether it existed. Its deliveries end as skipped. They and their
// log expire at most Options.LogAge after the last of them ended.
func (w *Webhooks) Delete(ctx context.Context, id string) (bool, error) {
	for {
		before, err := w.store.one(ctx, id)
		if err != nil {
			return false, redisdb.Away(err)
		}
		if before == "" {
			return false, nil
		}
		done, err := w.store.put(ctx, id, before, "", true)
		if err != nil {
			return false, redisdb.Away(err)
		}
		if done {
			w.dir.reload(ctx)
			return true, nil
		}
	}
}

const codeChanged = "WebhookEndpointChanged"

// write stores an endpoint. before is the value stored now.
func (w *Webhooks) write(ctx context.Context, before string, e *endpoint, s secrets, fresh bool) error {
	if err := e.seal(w.ring, s); err != nil {
		return err
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write webhook endpoint %s: %w", e.ID, err)
	}
	done, err := w.store.put(ctx, e.ID, before, string(raw), fresh)
	if err != nil {
		return redisdb.Away(err)
	}
	if !done {
		return fault.New(fault.Conflict, codeChanged, "The webhook endpoint was changed at the same time. Read it again and repeat your change")
	}
	w.dir.reload(ctx)
	return nil
}

// load reads an endpoint and its secrets for a change.
func (w *Webhooks) load(ctx context.Context, id string) (raw string, e endpoint, s secrets, err error) {
	if raw, err = w.store.one(ctx, id); err != nil {
		return "", e, s, redisdb.Away(err)
	}
	if raw == "" {
		return "", e, s, notFound(id)
	}
	if err = json.Unmarshal([]byte(raw), &e); err != nil {
		return "", e, s, fmt.Errorf("read webhook endpoint %s: %w", id, err)
	}
	s, err = e.open(w.ring)
	return raw, e, s, err
}

// Endpoint returns one endpoint with its secrets masked.
func (w *Webhooks) Endpoint(ctx context.Context, id string) (api.Endpoint, error) {
	all, err := w.store.all(ctx)
	if err != nil {
		return api.Endpoint{}, redisdb.Away(err)
	}
	if all.endpoints[id] == "" {
		return api.Endpoint{}, notFound(id)
	}
	v, err := w.show(all, id)
	if err != nil {
		return api.Endpoint{}, err
	}
	one := []api.Endpoint{v}
	err = w.addRests(ctx, one)
	return one[0], err
}

// addRests adds the pauses of endpoints.
func (w *Webhooks) addRests(ctx context.Context, endpoints []api.Endpoint) error {
	ids := make([]string, len(endpoints))
	for i, e := range endpoints {
		ids[i] = e.ID
	}
	found, err := w.store.rests(ctx, ids...)
	if err != nil {
		return redisdb.Away(err)
	}
	for i, e := range endpoints {
		if r, ok := found[e.ID]; ok && r.URL == e.URL && e.Enabled {
			endpoints[i].Resting = &r.EndpointRest
		}
	}
	return nil
}

// Endpoints returns a page of endpoints, oldest first. Pages count from 0.
func (w *Webhooks) Endpoints(ctx context.Context, page, pageSize int) (api.EndpointPage, error) {
	all, err := w.store.all(ctx)
	if err != nil {
		return api.EndpointPage{}, redisdb.Away(err)
	}
	rows := make([]api.Endpoint, 0, len(all.endpoints))
	for id := range all.endpoints {
		v, err := w.show(all, id)
		if err != nil {
			return api.EndpointPage{}, err
		}
		rows = append(rows, v)
	}
	slices.SortFunc(rows, func(a, b api.Endpoint) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	numbers, from, end := api.PageQuery{Page: page, PageSize: pageSize}.Of(len(rows))
	rows = rows[from:end]
	if err := w.addRests(ctx, rows); err != nil {
		return api.EndpointPage{}, err
	}
	return api.EndpointPage{PageNumbers: numbers, Endpoints: rows}, nil
}

// show returns a stored endpoint as a type of the API. Secrets that cannot be opened (their key is gone)
// are shown as absent; the log has the reason.
func (w *Webhooks) show(all stored, id string) (api.Endpoint, error) {
	var e endpoint
	if err := json.Unmarshal([]byte(all.endpoints[id]), &e); err != nil {
		return api.Endpoint{}, fmt.Errorf("read webhook endpoint: %w", err)
	}
	s, err := e.open(w.ring)
	if err != nil {
		w.log.Error("can't open the secrets of a webhook endpoint", "endpoint", e.ID, "error", err)
	}
	var o *switchedOff
	if off := all.off[id]; off != "" {
		o = new(switchedOff)
		if err := json.Unmarshal([]byte(off), o); err != nil || o.URL != e.URL {
			o = nil
		}
	}
	var since *time.Time
	if f := failureOf(all.failing[id]); f.url == e.URL {
		since = &f.since
	}
	v := e.view(s, o, since, w.now())
	v.Deliveries, _ = strconv.Atoi(all.made[id])
	return v, nil
}

// Test sends an event to an endpoint immediately and returns the result: a webhookTest, or a sample of the
// given type, whether or not the endpoint asks for it. It also works on an endpoint that is switched off. It
// leaves no entry in the log of deliveries and does not count for the health of the endpoint.
func (w *Webhooks) Test(ctx context.Context, id, kind string) (api.EndpointTested, error) {
	of := cmp.Or(event.Type(kind), event.WebhookTest)
	if !slices.Contains(event.Types(), of) {
		return api.EndpointTested{}, fault.InvalidField("event", "isn't an event type")
	}
	t, err := w.probeTarget(ctx, id)
	if err != nil {
		return api.EndpointTested{}, err
	}
	now := w.now()
	e, err := sampleEvent(of, t, now)
	if err != nil {
		return api.EndpointTested{}, err
	}
	got := w.poster.post(ctx, posting{to: t, event: e, delivery: e.ID, attempt: 1, created: now}, now)
	tested := api.EndpointTested{
		Success: got.ok(), StatusCode: got.status, Latency: int(got.latency.Milliseconds()), Response: got.head,
	}
	if !tested.Success {
		tested.Error = got.fault().Error()
	}
	return tested, nil
}

// probeTarget makes an endpoint ready for a test, whether it is on or off.
func (w *Webhooks) probeTarget(ctx context.Context, id string) (*target, error) {
	t, err := w.dir.findSurely(ctx, id)
	if err != nil {
		return nil, redisdb.Away(err)
	}
	if t != nil && t.off == "" && t.broken == nil {
		return t, nil
	}
	_, e, s, err := w.load(ctx, id)
	if fault.Is(err, fault.NotFound) && t != nil { // an endpoint of settings or an account, switched off
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	return &target{id: id, url: e.URL, accounts: e.Accounts, headers: s.Headers, keys: s.keys}, nil
}

// endpointAccount returns the account whose own endpoint this is, or "" for any other endpoint.
func endpointAccount(endpoint string) string {
	account, ok := strings.CutPrefix(endpoint, accountPrefix)
	if !ok {
		return ""
	}
	return account
}

func notFound(id string) error {
	return fault.New(fault.NotFound, "WebhookEndpointNotFound", "There is no webhook endpoint %q", id)
}
