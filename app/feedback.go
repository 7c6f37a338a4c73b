package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend/apiadmin"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// buildFeedback builds the intake of later results from providers, pages and returned mail. Every process
// accepts facts; processes that deliver apply them.
func (a *App) buildFeedback(context.Context) error {
	c := a.cfg.Feedback
	if m := c.Reconcile.Mailgun; (m.APIKey == "") != (m.Domain == "") {
		return errors.New("feedback.reconcile.mailgun: apiKey and domain go together; set both or none")
	}
	a.apiAdmin = apiadmin.New(a.apiSender)
	var err error
	a.feedback, err = feedback.New(
		feedback.Parts{DB: a.db, Outbox: a.campaigns.Facts(), Suppression: a.suppressions, Tokens: a.signedTokens,
			Account: a.accounts.Named},
		feedback.Options{
			Providers: providerSecrets(c.Providers), Hook: a.hook, Sources: a.eventSources,
			Every:        c.Reconcile.Mailgun.Every,
			StoreAddress: a.cfg.Tracking.StoreAddress, KeepRaw: c.KeepRaw,
			Pace: (&pace{count: a.outbox.Handled}).perSecond, Logger: a.log, Registry: a.metrics,
		})
	if err != nil {
		return err
	}
	a.provider = a.providers()
	if a.delivers {
		a.life.onRun("imports of providers' lists", a.provider.Run)
		a.life.onFollow("feedback", a.feedback.Run)
	}
	return a.buildBounces()
}

// hook implements feedback.Options.Hook.
func (a *App) hook(ctx context.Context, gateway string) (provider.Name, string, error) {
	h, err := a.gateways.Hook(ctx, gateway)
	return h.Provider, h.Secret, err
}

// eventSources returns the events APIs to reconcile with: the gateways', and Mailgun's in the settings, for
// senders through its SMTP relay.
func (a *App) eventSources(ctx context.Context) ([]feedback.Source, error) {
	var all []feedback.Source
	if m := a.cfg.Feedback.Reconcile.Mailgun; m.APIKey != "" && m.Domain != "" {
		t := apisend.Target{Type: api.GatewayMailgun, ID: "settings:mailgun", Key: m.APIKey.Reveal(),
			Domain: m.Domain, URL: m.BaseURL}
		all = append(all, feedback.Gateway{ID: t.ID, Client: a.apiAdmin,
			Target: func(context.Context) (apisend.Target, error) { return t, nil }})
	}
	for page, pages := 0, 1; page < pages; page++ {
		got, err := a.gateways.List(ctx, page, mostGateways)
		if err != nil {
			return nil, err
		}
		pages = got.Pages
		for _, g := range got.Gateways {
			if apiadmin.HasEvents(g.Type) {
				all = append(all, feedback.Gateway{ID: g.Gateway.Gateway, Client: a.apiAdmin,
					Target: func(ctx context.Context) (apisend.Target, error) {
						t, busy, err := a.readableGateway(ctx, g.Gateway.Gateway)
						if err == nil && busy {
							err = feedback.ErrPaused
						}
						return t, err
					}})
			}
		}
	}
	return all, nil
}

// mostGateways is how many gateways a page of them has.
const mostGateways = 1000

// readableGateway returns a gateway to read lists of its provider. busy says that it may not be asked now:
// reading must not cost sending.
func (a *App) readableGateway(ctx context.Context, id string) (t apisend.Target, busy bool, err error) {
	relay, err := a.gateways.Resolve(ctx, id)
	if err != nil {
		return t, false, err
	}
	info, err := a.gateways.Get(ctx, id)
	if err != nil {
		return t, false, err
	}
	slow, err := a.limits.State(ctx, "gateway:"+id)
	t = relay.API
	t.Type = relay.Type
	return t, info.State == gateways.StateOpen || slow.Until.After(time.Now()), err
}

// providers builds the imports of providers' suppression lists.
func (a *App) providers() *suppression.Providers {
	return suppression.NewProviders(a.suppressions, suppression.ProvidersOptions{List: a.apiAdmin.Suppressions,
		Gateway: func(ctx context.Context, id string) (api.GatewayType, apisend.Target, error) {
			t, busy, err := a.readableGateway(ctx, id)
			if err == nil && busy {
				err = suppression.ErrBusy
			}
			return t.Type, t, err
		}})
}

// providerSecrets splits the comma-separated secrets of each provider.
func providerSecrets(p config.Providers) map[provider.Name][]string {
	all := map[provider.Name][]string{}
	for name, text := range map[provider.Name]config.Secret{
		provider.SES: p.SES, provider.SendGrid: p.SendGrid, provider.Mailgun: p.Mailgun,
		provider.Postmark: p.Postmark, provider.Mailjet: p.Mailjet,
		provider.SparkPost: p.SparkPost, provider.Brevo: p.Brevo, provider.Resend: p.Resend,
		provider.Postal: p.Postal, provider.Mandrill: p.Mandrill, provider.Generic: p.Generic,
	} {
		for secret := range strings.SplitSeq(text.Reveal(), ",") {
			if secret = strings.TrimSpace(secret); secret != "" {
				all[name] = append(all[name], secret)
			}
		}
	}
	return all
}
