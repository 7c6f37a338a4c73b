package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/internal/provider"
)

// buildFeedback builds the intake of later results from providers, pages and returned mail. Every process
// accepts facts; those that deliver apply them.
func (a *App) buildFeedback(context.Context) error {
	c := a.cfg.Feedback
	mailgun, err := newMailgun(c.Reconcile.Mailgun)
	if err != nil {
		return err
	}
	a.feedback, err = feedback.New(
		feedback.Parts{DB: a.db, Outbox: a.campaigns.Facts(), Suppression: a.suppressions, Tokens: a.signedTokens,
			Account: a.accounts.Named},
		feedback.Options{
			Providers: providerSecrets(c.Providers), Hook: a.hook, Mailgun: mailgun, Every: c.Reconcile.Mailgun.Every,
			StoreAddress: a.cfg.Tracking.StoreAddress, KeepRaw: c.KeepRaw,
			Pace: (&pace{count: a.outbox.Handled}).perSecond, Logger: a.log, Registry: a.metrics,
		})
	if err != nil {
		return err
	}
	if a.delivers {
		a.life.onFollow("feedback", a.feedback.Run)
	}
	return a.buildBounces()
}

// hook implements feedback.Options.Hook.
func (a *App) hook(ctx context.Context, gateway string) (provider.Name, string, error) {
	h, err := a.gateways.Hook(ctx, gateway)
	return h.Provider, h.Secret, err
}

// newMailgun returns the events API of Mailgun; nil if it is not configured.
func newMailgun(m config.ReconcileMailgun) (*feedback.Mailgun, error) {
	if m.APIKey == "" && m.Domain == "" {
		return nil, nil
	}
	source, err := feedback.NewMailgun(feedback.MailgunOptions{APIKey: m.APIKey.Reveal(), Domain: m.Domain,
		BaseURL: m.BaseURL})
	if err != nil {
		return nil, fmt.Errorf("feedback.reconcile.mailgun: %w", err)
	}
	return source, nil
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
