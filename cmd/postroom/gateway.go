package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// gatewayCmd is about the relays that accounts share.
type gatewayCmd struct {
	List   gatewayListCmd   `cmd:"" default:"withargs" help:"List gateways (the default)."`
	Show   gatewayShowCmd   `cmd:"" help:"Show one gateway; passwords are masked."`
	Add    gatewayAddCmd    `cmd:"" help:"Add a gateway, or replace it."`
	Update gatewayUpdateCmd `cmd:"" help:"Change what the flags name of a gateway."`
	Verify gatewayVerifyCmd `cmd:"" help:"Try to log in to a gateway, without sending anything."`
	Delete gatewayDeleteCmd `cmd:"" help:"Delete a gateway that no account lists."`
}

// gatewayListCmd lists gateways.
type gatewayListCmd struct{ reachFlags }

// Run lists gateways.
func (g *gatewayListCmd) Run(ctx context.Context, con *console) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	list, err := pages(func(page int) ([]api.GatewayInfo, int, error) {
		p, err := api.ListGateways.Do(ctx, client, api.PageQuery{Page: page, PageSize: maxPage})
		return p.Gateways, p.Pages, err
	})
	if err != nil {
		return err
	}
	if g.JSON {
		return con.printJSON(list)
	}
	if len(list) == 0 {
		con.say("no gateways; to add one: postroom gateway add --help")
		return nil
	}
	con.show(gatewaysGrid(list, time.Now()))
	return nil
}

func gatewaysGrid(list []api.GatewayInfo, now time.Time) grid {
	g := grid{headings: []string{"gateway", "relay", "limits", "state", "deliveries", "last use", "last error"}}
	for _, info := range list {
		s := settingsOfGateway(info.Gateway)
		g.add(info.Gateway.Gateway, relayURL(s.relay), orDash(s.limits.Words()), info.State, fmt.Sprint(info.Deliveries), orNever(info.LastUse, now), orDash(clip(gatewayError(info, now), 60)))
	}
	return g
}

// gatewayError words the last failure of a gateway; empty: there was none.
func gatewayError(info api.GatewayInfo, now time.Time) string {
	e := info.LastError
	if e == nil {
		return ""
	}
	return e.ServerResponseCode + " " + moment(e.Time, now) + ": " + e.Response
}

// settingsOfGateway are the settings of a gateway, in the words that it shares with accounts.
func settingsOfGateway(g api.Gateway) relaySettings {
	s := relaySettings{
		relay:  &api.SMTPServer{Preset: g.Preset, Host: g.Host, Port: g.Port, Secure: g.Secure, TLS: g.TLS},
		oauth2: g.OAuth2, limits: g.Limits, proxy: g.Proxy, localAddress: g.LocalAddress, ehloName: g.SMTPEhloName,
	}
	if g.User != "" || g.Pass != "" {
		s.relay.Auth = &api.SMTPAuth{User: g.User, Pass: g.Pass}
	}
	return s
}

// into puts settings into a gateway.
func (s relaySettings) into(g api.Gateway) api.Gateway {
	r := relayOf(s)
	g.Preset, g.Host, g.Port, g.Secure, g.TLS = r.Preset, r.Host, r.Port, r.Secure, r.TLS
	g.User, g.Pass = "", ""
	if r.Auth != nil {
		g.User, g.Pass = r.Auth.User, r.Auth.Pass
	}
	g.OAuth2, g.Limits, g.Proxy, g.LocalAddress, g.SMTPEhloName = s.oauth2, s.limits, s.proxy, s.localAddress, s.ehloName
	return g
}

// warmupFlags let a gateway begin with little.
type warmupFlags struct {
	Warmup       float64 `group:"limits" placeholder:"N" help:"Begin with this many recipients a day, and send more every day, until --per-day: for an address that receivers don't know yet."`
	WarmupGrowth float64 `group:"limits" placeholder:"X" help:"How many times as many each day as the day before. Default: 1.5."`
}

// over lays the flags over a warm-up, nil for none.
func (f warmupFlags) over(w *api.Warmup) *api.Warmup {
	if f.Warmup == 0 && f.WarmupGrowth == 0 {
		return w
	}
	var next api.Warmup
	if w != nil {
		next = *w
	}
	if f.Warmup != 0 {
		next.PerDay, next.Started = f.Warmup, nil
	}
	next.Growth = cmp.Or(f.WarmupGrowth, next.Growth)
	return &next
}

// warmup words a warm-up.
func warmup(w *api.Warmup) string {
	text := fmt.Sprintf("%g a day at first", w.PerDay)
	if w.Started != nil {
		text += ", " + w.Started.Local().Format(time.DateOnly)
	}
	return text + fmt.Sprintf(", then × %g each day", cmp.Or(w.Growth, 1.5))
}

// gatewayShowCmd shows one gateway.
type gatewayShowCmd struct {
	reachFlags
	Gateway string `arg:"" help:"Id of the gateway."`
}

// Run shows one gateway.
func (g *gatewayShowCmd) Run(ctx context.Context, con *console) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	info, err := api.GetGateway.Do(ctx, client, g.Gateway)
	if err != nil {
		return err
	}
	if g.JSON {
		return con.printJSON(info)
	}
	con.show(gatewayGrid(info, time.Now()))
	return nil
}

func gatewayGrid(info api.GatewayInfo, now time.Time) grid {
	g := grid{headings: []string{"gateway", info.Gateway.Gateway}}
	if info.Name != "" {
		g.add("name", info.Name)
	}
	s := settingsOfGateway(info.Gateway)
	g.add("relay", relayURL(s.relay))
	s.add(&g)
	if w := info.Warmup; w != nil {
		g.add("warm-up", warmup(w))
	}
	g.add("state", info.State)
	g.add("deliveries", fmt.Sprint(info.Deliveries))
	g.add("last use", orNever(info.LastUse, now))
	if text := gatewayError(info, now); text != "" {
		g.add("last error", text)
	}
	g.add("created", info.Created.Local().Format(time.DateTime))
	return g
}

// gatewayAddCmd adds a gateway.
type gatewayAddCmd struct {
	Gateway  string `arg:"" help:"Id of the gateway, chosen by you: letters, digits and . _ @ + -"`
	Name     string `placeholder:"TEXT" help:"What people call it. Default: its id."`
	NoVerify bool   `help:"Do not try to log in first."`
	warmupFlags
	relayFlags
	reachFlags
}

// Run tries the relay, then adds the gateway.
func (g *gatewayAddCmd) Run(ctx context.Context, con *console) error {
	s, err := g.relayFlags.over(relaySettings{}, con)
	if err != nil {
		return err
	}
	if s.relay == nil {
		return usage("which relay? give --smtp, or --preset for a provider")
	}
	client, err := g.client()
	if err != nil {
		return err
	}
	if !g.NoVerify {
		if err := tryRelay(ctx, client, s); err != nil {
			return err
		}
	}
	if g.Name == "" {
		g.Name = g.Gateway
	}
	next := s.into(api.Gateway{Gateway: g.Gateway, Name: g.Name})
	next.Warmup = g.warmupFlags.over(nil)
	answer, err := api.CreateGateway.Do(ctx, client, next)
	if err != nil {
		return err
	}
	if g.JSON {
		return con.printJSON(answer)
	}
	con.say("gateway %s: %s", answer.Gateway, created[answer.State])
	return nil
}

// gatewayUpdateCmd changes a gateway.
type gatewayUpdateCmd struct {
	Gateway string  `arg:"" help:"Id of the gateway."`
	Name    *string `placeholder:"TEXT" help:"What people call it."`
	warmupFlags
	relayFlags
	reachFlags
}

// Run changes what the flags name. Secrets that they don't name stay, unless the relay they are for is another one.
func (g *gatewayUpdateCmd) Run(ctx context.Context, con *console) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	info, err := api.GetGateway.Do(ctx, client, g.Gateway)
	if err != nil {
		return err
	}
	s, err := g.relayFlags.over(settingsOfGateway(info.Gateway), con)
	if err != nil {
		return err
	}
	next := s.into(info.Gateway)
	set(&next.Name, g.Name)
	next.Warmup = g.warmupFlags.over(next.Warmup)
	patch := gatewayPatch(info.Gateway, next)
	if patch == (api.GatewayPatch{}) {
		return errNothing
	}
	answer, err := api.UpdateGateway.Do(ctx, client, patch, g.Gateway)
	if err != nil {
		return err
	}
	if g.JSON {
		return con.printJSON(answer)
	}
	con.say("gateway %s: changed", answer.Gateway)
	return nil
}

// gatewayPatch is what makes one gateway out of another. What it does not name stays.
func gatewayPatch(from, to api.Gateway) api.GatewayPatch {
	return api.GatewayPatch{
		Name: changed(from.Name, to.Name), Preset: changed(from.Preset, to.Preset), Host: changed(from.Host, to.Host), Port: changed(from.Port, to.Port),
		Secure: changed(from.Secure, to.Secure), User: changed(from.User, to.User), Pass: changed(from.Pass, to.Pass),
		TLS: changed(from.TLS, to.TLS), OAuth2: changed(from.OAuth2, to.OAuth2), Limits: changed(from.Limits, to.Limits), Warmup: changed(from.Warmup, to.Warmup),
		Proxy: changed(from.Proxy, to.Proxy), LocalAddress: changed(from.LocalAddress, to.LocalAddress), SMTPEhloName: changed(from.SMTPEhloName, to.SMTPEhloName),
	}
}

// gatewayVerifyCmd tries a gateway.
type gatewayVerifyCmd struct {
	reachFlags
	Gateway string `arg:"" help:"Id of the gateway."`
}

// Run tries a gateway from where Postroom runs.
func (g *gatewayVerifyCmd) Run(ctx context.Context, con *console) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	answer, err := api.VerifyAccount.Do(ctx, client, api.VerifyRequest{Gateway: g.Gateway})
	if err != nil {
		return err
	}
	if g.JSON {
		err = con.printJSON(answer)
	}
	switch {
	case !answer.SMTP.Success && !g.JSON:
		con.note("gateway %s refuses: %s", g.Gateway, clean(answer.SMTP.Error))
	case !g.JSON:
		con.say("gateway %s takes these settings", g.Gateway)
	}
	if !answer.SMTP.Success && err == nil {
		err = errReported
	}
	return err
}

// gatewayDeleteCmd deletes a gateway.
type gatewayDeleteCmd struct {
	reachFlags
	Gateway string `arg:"" help:"Id of the gateway."`
	Yes     bool   `short:"y" help:"Do not ask."`
}

// Run deletes a gateway.
func (g *gatewayDeleteCmd) Run(ctx context.Context, con *console) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	if !g.Yes && !con.confirm("Delete gateway %s?", g.Gateway) {
		return errors.New("nothing was deleted: say --yes to delete the gateway")
	}
	answer, err := api.DeleteGateway.Do(ctx, client, g.Gateway)
	if err != nil {
		return err
	}
	if g.JSON {
		return con.printJSON(answer)
	}
	con.say("gateway %s deleted", answer.Gateway)
	return nil
}
