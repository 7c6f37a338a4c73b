package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
)

func gatewayVerbs() []verb {
	return []verb{
		{name: "list", help: "List gateways (the default).",
			run: list(api.ListGateways, "no gateways; to add one: postroom gateway add --help", gatewaysGrid)},
		{name: "show", help: "Show one gateway, with masked passwords.", run: show(api.GetGateway, gatewayGrid)},
		{name: "add", help: "Add a gateway, or replace it.", run: &gatewayAddCmd{}},
		{name: "update", help: "Change a gateway.", run: &gatewayUpdateCmd{}},
		{name: "verify", help: "Test the login to a gateway. Sends nothing.", run: asks(gatewayVerify)},
		{name: "suppressions", help: "Import the suppression list of a gateway's provider.",
			run: &gatewaySuppressionsCmd{}},
		{name: "webhook", help: "Create the webhook at a gateway's provider, or fix it.", run: &gatewayHookCmd{}},
		{name: "domains", help: "List the sender domains that a gateway's provider knows.",
			run: asks(gatewayDomains)},
		{name: "delete", help: "Delete a gateway that no account uses.", run: &deleteCmd[api.GatewayDeleted]{
			route: api.DeleteGateway, what: "gateway", consequence: " for good",
		}},
	}
}

func gatewaysGrid(list []api.GatewayInfo, now time.Time) grid {
	g := newGrid("gateway", "relay", "limits", "state", "deliveries", "last use", "last error")
	for _, info := range list {
		s := settingsOfGateway(info.Gateway)
		g.add(info.Gateway.Gateway, relayOfGateway(info.Gateway), orDash(s.limits.Words()), info.State,
			info.Deliveries,
			orNever(info.LastUse, now), orDash(clip(gatewayError(info, now), 60)))
	}
	return g
}

// gatewayError returns the last failure of a gateway as text; empty: none.
func gatewayError(info api.GatewayInfo, now time.Time) string {
	e := info.LastError
	if e == nil {
		return ""
	}
	return e.ServerResponseCode + " " + moment(e.Time, now) + ": " + e.Response
}

func gatewayGrid(info api.GatewayInfo, now time.Time) grid {
	g, s := newGrid("gateway", info.Gateway.Gateway), settingsOfGateway(info.Gateway)
	g.fact("name", info.Name)
	if a := info.API; a != nil {
		g.fact("type", string(info.Type))
		for _, fact := range [][2]string{{"url", a.URL}, {"region", a.Region}, {"domain", a.Domain}, {"stream",
			a.Stream},
			{"pool", a.Pool}, {"subaccount", a.Subaccount}, {"key", a.Key}, {"secret", a.Secret}} {
			g.fact(fact[0], fact[1])
		}
		if a.Sandbox {
			g.fact("sandbox", "yes: nothing is delivered")
		}
		if a.Batch > 0 {
			g.fact("messages in a request", fmt.Sprint(a.Batch))
		}
		g.fact("limits", s.limits.Words())
		g.fact("proxy", s.Proxy)
	} else if info.Type == api.GatewayMX {
		g.fact("type", "mx: straight to the recipients' servers")
		d := cmp.Or(info.MX, &api.GatewayDirect{})
		for _, a := range d.Addresses {
			g.fact("sends from", a.Address+" as "+a.Name)
		}
		g.fact("tls", d.TLS)
		g.fact("limits", s.limits.Words())
	} else {
		g.fact("relay", relayURL(s.SMTP))
		s.add(&g)
	}
	g.fact("limits per domain", strings.Join(gateways.FormatDomainLimits(info.LimitsPerDomain), ", "))
	if w := info.Warmup; w != nil {
		began := ""
		if w.Started != nil {
			began = ", " + w.Started.Local().Format(time.DateOnly)
		}
		g.fact("warm-up", fmt.Sprintf("%g a day at first%s, then × %g each day", w.PerDay, began,
			cmp.Or(w.Growth, 1.5)))
	}
	hookFacts(&g, info.Webhook, now)
	g.fact("state", info.State)
	g.fact("deliveries", fmt.Sprint(info.Deliveries))
	g.fact("last use", orNever(info.LastUse, now))
	g.fact("last error", gatewayError(info, now))
	g.fact("created", info.Created.Local().Format(time.DateTime))
	return g
}

// relayOfGateway says in a few words where a gateway leads.
func relayOfGateway(g api.Gateway) string {
	switch {
	case g.Type == api.GatewayMX:
		return "mx"
	case g.API == nil:
		return relayURL(settingsOfGateway(g).SMTP)
	case g.API.URL != "":
		return string(g.Type) + " " + g.API.URL
	}
	return string(g.Type) + " API"
}

// settingsOfGateway returns the settings of a gateway in the form that it shares with accounts.
func settingsOfGateway(g api.Gateway) relaySettings {
	s := relaySettings{api.VerifyRequest{
		SMTP:   &api.SMTPServer{Preset: g.Preset, Host: g.Host, Port: g.Port, Secure: g.Secure, TLS: g.TLS},
		OAuth2: g.OAuth2, Proxy: g.Proxy, LocalAddress: g.LocalAddress, SMTPEhloName: g.SMTPEhloName,
	}, g.Limits}
	if g.User != "" || g.Pass != "" {
		s.SMTP.Auth = &api.SMTPAuth{User: g.User, Pass: g.Pass}
	}
	return s
}

func (s relaySettings) into(g api.Gateway) api.Gateway {
	r := relayOf(s)
	if r.Auth == nil {
		r.Auth = &api.SMTPAuth{}
	}
	g.Preset, g.Host, g.Port, g.Secure, g.TLS, g.User, g.Pass = r.Preset, r.Host, r.Port, r.Secure, r.TLS,
		r.Auth.User, r.Auth.Pass
	g.OAuth2, g.Limits, g.Proxy, g.LocalAddress, g.SMTPEhloName = s.OAuth2, s.limits, s.Proxy, s.LocalAddress,
		s.SMTPEhloName
	return g
}

// warmupFlags are the warm-up of a gateway.
type warmupFlags struct {
	Warmup       float64 `group:"limits" placeholder:"N" help:"Start with this many recipients per day, and increase daily until --per-day, for a new sending address."`
	WarmupGrowth float64 `group:"limits" placeholder:"X" help:"Daily growth factor. Default: 1.5."`
}

// over returns the warm-up changed by the flags; nil: none.
func (f warmupFlags) over(w *api.Warmup) *api.Warmup {
	if f.Warmup == 0 && f.WarmupGrowth == 0 {
		return w
	}
	next := *cmp.Or(w, &api.Warmup{})
	if f.Warmup != 0 {
		next.PerDay, next.Started = f.Warmup, nil
	}
	next.Growth = cmp.Or(f.WarmupGrowth, next.Growth)
	return &next
}

// domainFlags are the limits of a gateway for recipients' domains.
type domainFlags struct {
	LimitsPerDomain []string `group:"limits" placeholder:"LIMITS" sep:"none" help:"Limits for each recipient domain, for example 'perMinute=100 connections=2', or for one domain, for example 'gmail.com perSecond=5'. Repeat the flag for several. '' removes all."`
}

// over returns the limits that the flags name, all others gone; old: no flag was given.
func (f domainFlags) over(old map[string]api.DomainLimits) (map[string]api.DomainLimits, error) {
	if len(f.LimitsPerDomain) == 0 {
		return old, nil
	}
	lines := slices.DeleteFunc(slices.Clone(f.LimitsPerDomain), func(line string) bool { return line == "" })
	all, err := gateways.ParseDomainLimits(lines)
	if err != nil {
		return nil, usage("--limits-per-domain: %v", err)
	}
	return all, nil
}

type gatewayAddCmd struct {
	Gateway  string `arg:"" help:"ID of the gateway: letters, digits and . _ @ + -"`
	Name     string `placeholder:"TEXT" help:"Name in lists. Defaults to the ID."`
	Type     string `placeholder:"TYPE" help:"Type: smtp, http (your own endpoint), ses, sendgrid, mailgun, postmark, mailjet, sparkpost, brevo, resend, mandrill, or mx (directly to the recipients' servers). Default: smtp."`
	NoVerify bool   `help:"Don't test the login first."`
	Webhook  bool   `help:"Also create the provider's webhook. By default, Postroom asks."`
	apiFlags
	domainFlags
	warmupFlags
	relayFlags
}

// Run tries the relay, then adds the gateway.
func (g *gatewayAddCmd) Run(s *session) error {
	if g.Type != "" && g.Type != string(api.GatewaySMTP) {
		return g.addAPI(s)
	}
	if !g.apiFlags.empty() {
		return usage("--key-file and the other API flags need --type, for example --type postmark")
	}
	settings, err := g.relayFlags.over(relaySettings{}, s.console)
	if err != nil {
		return err
	}
	if settings.SMTP == nil {
		return usage("which relay? give --smtp, or --preset for a provider")
	}
	if !g.NoVerify {
		if err := s.tryRelay(settings); err != nil {
			return err
		}
	}
	next := settings.into(api.Gateway{Gateway: g.Gateway, Name: cmp.Or(g.Name, g.Gateway)})
	next.Warmup = g.warmupFlags.over(nil)
	if next.LimitsPerDomain, err = g.domainFlags.over(nil); err != nil {
		return err
	}
	answer, err := api.CreateGateway.Do(s, s.client, next)
	return s.said(answer, err, "gateway %s: %s", answer.Gateway, created[answer.State])
}

type gatewayUpdateCmd struct {
	Gateway string  `arg:"" help:"ID of the gateway."`
	Name    *string `placeholder:"TEXT" help:"Name in lists."`
	apiFlags
	domainFlags
	warmupFlags
	relayFlags
}

// Run changes what the flags name. Other secrets stay, unless the relay changes.
func (g *gatewayUpdateCmd) Run(s *session) error {
	info, err := api.GetGateway.Do(s, s.client, g.Gateway)
	if err != nil {
		return err
	}
	settings, err := g.relayFlags.over(settingsOfGateway(info.Gateway), s.console)
	if err != nil {
		return err
	}
	next := info.Gateway
	if next.API != nil || next.Type == api.GatewayMX {
		next.Limits, next.Proxy = settings.limits, settings.Proxy
	} else {
		next = settings.into(next)
	}
	if !g.apiFlags.empty() {
		if next.Type == api.GatewayMX {
			next.MX, err = g.apiFlags.direct(next.MX)
		} else {
			next.API, err = g.apiFlags.over(next.API, s.console)
		}
		if err != nil {
			return err
		}
	}
	api.Set(&next.Name, g.Name)
	next.Warmup = g.warmupFlags.over(next.Warmup)
	if next.LimitsPerDomain, err = g.domainFlags.over(next.LimitsPerDomain); err != nil {
		return err
	}
	patch := api.PatchOf[api.GatewayPatch](info.Gateway, next)
	if patch == (api.GatewayPatch{}) {
		return errNothing
	}
	answer, err := api.UpdateGateway.Do(s, s.client, patch, g.Gateway)
	return s.said(answer, err, "gateway %s: changed", answer.Gateway)
}

// gatewayVerify tries a gateway from where Postroom runs.
func gatewayVerify(s *session, g byID) error {
	answer, err := api.VerifyAccount.Do(s, s.client, api.VerifyRequest{Gateway: g.ID})
	if err != nil {
		return err
	}
	return s.tried(answer, []trial{{"gateway " + g.ID, answer.SMTP}})
}
