package gateways

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
)

// ProviderOf returns the provider whose webhooks a type of gateway gets; empty if it gets none.
func ProviderOf(t api.GatewayType) provider.Name {
	switch _, known := apiTypes[t]; {
	case t == api.GatewayHTTP:
		return provider.Generic
	case known:
		return provider.Name(t)
	}
	return ""
}

// hookSecretOurs are the types whose webhooks are proven by a secret that we choose.
var hookSecretOurs = []api.GatewayType{api.GatewayHTTP, api.GatewayPostmark, api.GatewayMailjet,
	api.GatewaySparkPost, api.GatewayBrevo}

// withHookSecret returns a gateway with a secret for its webhooks. It makes one if none is set and the choice
// is ours. It drops a stored secret if the gateway now leads to another place, because it proves nothing
// there. old is nil for a new gateway.
func withHookSecret(old *stored, g api.Gateway) (with api.Gateway, made string) {
	settings := ofGateway(g)
	if !settings.isAPI() {
		return g, ""
	}
	g.API = clone(cmp.Or(g.API, &api.GatewayAPI{}))
	if g.API.WebhookSecret == records.Mask && old != nil &&
		!slices.Equal(settings.apiPlace(), ofGateway(old.Value).apiPlace()) {
		g.API.WebhookSecret = ""
	}
	if g.API.WebhookSecret != "" || !slices.Contains(hookSecretOurs, g.Type) {
		return g, ""
	}
	if made = rand.Text(); g.Type == api.GatewayHTTP {
		made = standardSecret()
	}
	g.API.WebhookSecret = made
	return g, made
}

// checkHookSecret checks the secret of webhooks as the route that takes them does.
func (s *Settings) checkHookSecret(f *Faults) {
	secret := s.api.WebhookSecret
	if secret == "" || secret == records.Mask {
		return
	}
	_, err := provider.New(ProviderOf(s.kind), provider.Options{Secrets: []string{secret},
		Bind: func(context.Context, string, string, time.Time) (string, error) { return "", nil }})
	if err != nil {
		f.Add("api.webhookSecret", "%v", err)
	}
}

// Hook is how a gateway's webhooks are proven.
type Hook struct {
	Provider provider.Name // empty if the gateway has none
	Secret   string        // empty if no one has set one yet
}

// Hook returns how a gateway's webhooks are proven, from Resolve's cache, or NotFound, code GatewayNotFound.
func (s *Store) Hook(ctx context.Context, id string) (Hook, error) {
	if len(id) > 256 || !ValidID(id) { // it came in the path of an unproven request
		return Hook{}, notFound(id)
	}
	f, err := s.present(ctx, id)
	return f.hook, err
}

// HookURL returns the address that a gateway's webhooks are posted to. It is "" if there is no public
// address, or the type has no webhooks.
func (s *Store) HookURL(t api.GatewayType, id string) string {
	base, name := strings.TrimSuffix(s.public(), "/"), ProviderOf(t)
	if base == "" || name == "" {
		return ""
	}
	return base + "/webhooks/provider/" + string(name) + "/" + id
}

// SetHookSecret stores the secret of a gateway's webhooks. If it is empty, one is made, where the choice is
// ours.
func (s *Store) SetHookSecret(ctx context.Context, id, secret string) error {
	return s.store.Update(ctx, id, func(old *stored) (api.Gateway, error) {
		g := old.Value
		g.API = clone(cmp.Or(g.API, &api.GatewayAPI{}))
		g.API.WebhookSecret = secret
		g, _ = withHookSecret(old, g)
		return g, s.Check(g)
	})
}

// hooked is the stored state of a webhook.
type hooked struct {
	State     api.HookState
	URL, Text string
	At        time.Time
}

// NoteHook stores the current state of a gateway's webhook, and returns it with the time.
func (s *Store) NoteHook(ctx context.Context, id string, h api.GatewayWebhook) (api.GatewayWebhook, error) {
	h.Checked = new(s.now().UTC().Truncate(time.Millisecond))
	h.Error = message.OneLine(h.Error, MostErrorText)
	_, err := hookScript.Run(ctx, s.client, []string{s.store.Key(id), s.store.StateKey(id)},
		hooked{h.State, h.URL, h.Error, *h.Checked})
	return h, err
}

// readHook returns the state of a gateway's webhook, or nil if its type has none. After a change of the
// public address it is unknown.
func (s *Store) readHook(g *stored) *api.GatewayWebhook {
	kind := g.Value.Type
	if ProviderOf(kind) == "" {
		return nil
	}
	h := &api.GatewayWebhook{URL: s.HookURL(kind, g.Value.Gateway), State: api.HookUnset}
	if state := g.State["hook"]; state != "" {
		h.State, h.Error = api.HookState(state), g.State["hookError"]
		h.Checked = new(redisdb.ParseTime(g.State["hookAt"]))
		if g.State["hookUrl"] != h.URL {
			h.State, h.Error = api.HookUnknown, ""
		}
	}
	return h
}
