package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apiadmin"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// adminTimeout bounds the requests to a provider while the client waits. There may be several of them.
const adminTimeout = 40 * time.Second

// SetWebhook creates a gateway's webhook at its provider, or fixes it, and stores the secret that proves it.
// With Check it only compares. If the provider refuses, that isn't an error: the answer says what is wrong,
// and is stored with the gateway.
func (p *Provisioner) SetWebhook(ctx context.Context, id string, req api.GatewayWebhookRequest) (
	api.GatewayWebhook, error) {
	target, err := p.target(ctx, id)
	if err != nil {
		return api.GatewayWebhook{}, err
	}
	h := api.GatewayWebhook{URL: p.Gateways.HookURL(target.Type, id), State: api.HookUnknown}
	if h.URL == "" {
		return h, fault.New(fault.Conflict, "ServiceURLMissing", "The provider needs a URL to post to. "+
			"Set serviceUrl, this Postroom's public URL, first")
	}
	hook, err := p.Gateways.Hook(ctx, id)
	if err == nil && hook.Secret == "" && !req.Check { // the gateway is older than its secret
		if err = p.Gateways.SetHookSecret(ctx, id, ""); err == nil {
			hook, err = p.Gateways.Hook(ctx, id)
		}
	}
	if err != nil {
		return h, err
	}
	asking, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if req.Check {
		h.State, err = p.Admin.Webhook(asking, target, h.URL, hook.Secret)
	} else {
		err = p.setWebhook(asking, id, target, &h, hook)
	}
	_, refused := errors.AsType[*smtpsend.Error](err)
	switch {
	case refused, errors.Is(err, apiadmin.ErrLacking):
		h.State, h.Error = api.HookUnknown, err.Error()
	case err != nil:
		return h, err
	case h.State == api.HookWrong:
		h.Error = "it is off, lacks events or has another secret; postroom gateway webhook " + id + " changes that"
	}
	return p.Gateways.NoteHook(ctx, id, h)
}

// setWebhook has the provider create or change the webhook, and stores a secret that the provider made.
func (p *Provisioner) setWebhook(ctx context.Context, id string, t apisend.Target, h *api.GatewayWebhook,
	hook gateways.Hook) error {
	secret, err := p.Admin.SetWebhook(ctx, t, h.URL, hook.Secret)
	if err != nil {
		return err
	}
	if secret != hook.Secret {
		if err := p.Gateways.SetHookSecret(ctx, id, secret); err != nil {
			return fmt.Errorf("store the secret of the webhook: %w", err)
		}
	}
	h.State = api.HookOK
	return nil
}

// target returns the API of a gateway. Invalid: it has none.
func (p *Provisioner) target(ctx context.Context, id string) (apisend.Target, error) {
	relay, err := p.Gateways.Resolve(ctx, id)
	if err == nil && relay.API.Type == "" {
		err = fault.New(fault.Conflict, "GatewayWithoutAPI", "Gateway %s doesn't use a provider's API. "+
			"Only gateways with one have webhooks and domains", id)
	}
	return relay.API, err
}

// GatewayDomains lists the sender domains that a gateway's provider knows. If the provider can't be asked, it
// returns a Conflict with the reason.
func (p *Provisioner) GatewayDomains(ctx context.Context, id string) (api.GatewayDomains, error) {
	target, err := p.target(ctx, id)
	if err != nil {
		return api.GatewayDomains{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	list, err := p.Admin.Domains(ctx, target)
	if err != nil {
		return api.GatewayDomains{}, fault.Wrap(err, fault.Conflict, "ProviderRefused", "%v", err)
	}
	if list == nil {
		list = []api.GatewayDomain{}
	}
	return api.GatewayDomains{Domains: list}, nil
}
