package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// gatewayHookCmd sets up the webhook at a gateway's provider.
type gatewayHookCmd struct {
	ID    string `arg:"" help:"ID of the gateway."`
	Check bool   `help:"Compare only. Change nothing at the provider."`
}

// Run fails unless the webhook is right.
func (g *gatewayHookCmd) Run(s *session) error {
	h, err := api.SetGatewayWebhook.Do(s, s.client, api.GatewayWebhookRequest{Check: g.Check}, g.ID)
	if err != nil {
		return err
	}
	return s.done(h, h.State != api.HookOK, func() { s.sayHook(g.ID, h) })
}

func (s *session) sayHook(id string, h api.GatewayWebhook) {
	if s.say("gateway %s: webhook %s, %s", id, h.State, h.URL); h.Error != "" {
		s.note("%s", clean(h.Error))
	}
}

// gatewayDomains lists the sender domains that a gateway's provider knows.
func gatewayDomains(s *session, g byID) error {
	answer, err := api.ListGatewayDomains.Do(s, s.client, g.ID)
	t := newGrid("domain", "verified", "SPF", "DKIM", "return path")
	for _, d := range answer.Domains {
		t.add(d.Name, valid(&d.Verified), valid(d.SPF), valid(d.DKIM), valid(d.ReturnPath))
	}
	return s.table(answer, err, "no domains: add one at the provider", t, "")
}

// valid says whether a record is valid; nil: the provider doesn't tell.
func valid(v *bool) string {
	switch {
	case v == nil:
		return "-"
	case *v:
		return "yes"
	}
	return "no"
}

// addedGateway is the answer of gateway add in JSON.
type addedGateway struct {
	api.GatewayCreated
	Webhook *api.GatewayWebhook `json:"webhook,omitempty"`
}

// offerHook sets up the webhook of a new gateway, if that is wanted; nil: it is not.
func (g *gatewayAddCmd) offerHook(s *session) (*api.GatewayWebhook, error) {
	kind := api.GatewayType(g.Type)
	if gateways.ProviderOf(kind) == "" || kind == api.GatewayHTTP && !g.Webhook {
		return nil, nil
	}
	if !g.Webhook && !s.confirm("Create a webhook at %s, so that bounces are reported?", kind) {
		return nil, nil
	}
	h, err := api.SetGatewayWebhook.Do(s, s.client, api.GatewayWebhookRequest{}, g.Gateway)
	return &h, err
}

// added says what came of a new gateway. The gateway stays if its webhook could not be created.
func (g *gatewayAddCmd) added(s *session, answer api.GatewayCreated) error {
	h, err := g.offerHook(s)
	if err != nil {
		h = &api.GatewayWebhook{State: api.HookUnknown, Error: explain(err)}
	}
	return s.done(addedGateway{answer, h}, h != nil && h.State != api.HookOK, func() {
		s.say("gateway %s: %s", answer.Gateway, created[answer.State])
		if answer.Secret != "" {
			s.say("its requests are signed with %s; this is shown only now", answer.Secret)
			s.say("its events have to be signed with %s; this is shown only now", answer.WebhookSecret)
		}
		if h != nil {
			s.sayHook(answer.Gateway, *h)
		}
	})
}

// untracked are the providers that track opens and clicks as their console says, whatever a message says.
var untracked = map[api.GatewayType]string{api.GatewaySES: "the event destinations of its configuration set",
	api.GatewayBrevo: "the settings of its transactional platform", api.GatewayResend: "each domain"}

// gateways tries the key of each gateway with an API, and compares its webhook.
func (x *exam) gateways(ctx context.Context) []finding {
	const name = "gateways"
	if x.away {
		return nil
	}
	s := &session{Context: ctx, client: x.client}
	list, err := all(s, api.ListGateways, api.PageQuery{PageSize: maxPage})
	if err != nil {
		return []finding{{name, fail, explain(err), ""}}
	}
	found := make([][]finding, len(list))
	var asked errgroup.Group
	asked.SetLimit(loginsAtOnce)
	for i, g := range list {
		if gateways.ProviderOf(g.Type) != "" {
			asked.Go(func() error {
				found[i] = x.gateway(ctx, g)
				return nil
			})
		}
	}
	_ = asked.Wait() // none fails
	var flat []finding
	for _, some := range found {
		flat = append(flat, some...)
	}
	return flat
}

// gateway tries the key of a gateway, and compares its webhook.
func (x *exam) gateway(ctx context.Context, g api.GatewayInfo) []finding {
	const name = "gateways"
	id := g.Gateway.Gateway
	who := fmt.Sprintf("gateway %s (%s)", id, g.Type)
	tried, err := api.VerifyAccount.Do(ctx, x.client, api.VerifyRequest{Gateway: id})
	switch {
	case err != nil:
		return []finding{{name, fail, who + ": " + explain(err), ""}}
	case !tried.SMTP.Success:
		return []finding{{name, fail, who + ": " + tried.SMTP.Error, smtpsend.Advice(tried.SMTP.Code)}}
	}
	found := []finding{{name, ok, who + " takes the key", ""}}
	if where := untracked[g.Type]; where != "" {
		found = append(found, finding{name, warn, who + ": a message can't turn off the provider's own tracking",
			"make sure that tracking of opens and clicks is off in " + where + " at the provider"})
	}
	if g.Type == api.GatewayHTTP {
		return found
	}
	h, err := api.SetGatewayWebhook.Do(ctx, x.client, api.GatewayWebhookRequest{Check: true}, id)
	switch {
	case err != nil:
		return append(found, finding{name, warn, who + ": its webhook can't be compared: " + explain(err), ""})
	case h.State == api.HookOK:
		return append(found, finding{name, ok, who + " reports to " + h.URL, ""})
	}
	return append(found, finding{name, warn, fmt.Sprintf("%s: webhook %s. %s", who, h.State, h.Error),
		"bounces and complaints are not reported: postroom gateway webhook " + id})
}

// hookFacts adds the webhook of a gateway to its facts.
func hookFacts(g *grid, h *api.GatewayWebhook, now time.Time) {
	if h == nil {
		return
	}
	text := string(h.State)
	if h.Checked != nil {
		text += ", " + moment(*h.Checked, now)
	}
	if h.Error != "" {
		text += ": " + h.Error
	}
	g.fact("webhook", text)
	g.fact("webhook url", h.URL)
}
