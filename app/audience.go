package app

import (
	"context"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/newsletter/audience"
)

// buildAudience builds the lists and their subscribers. Any process may follow events and sweep; one at a
// time does.
func (a *App) buildAudience(context.Context) error {
	var err error
	a.audience, err = audience.New(audience.Parts{
		DB: a.db, Suppressions: a.suppressions,
		Account: func(ctx context.Context, account string) error {
			_, err := a.accounts.Get(ctx, account)
			return err
		},
		Campaigns: func() audience.Campaigns { return a.campaigns },
	}, audience.Options{PendingRetention: a.cfg.Newsletter.PendingRetention, InUse: inUse(a), Logger: a.log,
		Registry: a.metrics, Room: accounts.Room(a.accounts, "subscribers"), ImportRoom: importRoom(a)})
	if err != nil {
		return err
	}
	a.life.onFollow("audience", a.audience.Run)
	return nil
}

// buildOptIn builds what asks people to confirm subscriptions. Every process may: an import of one that does
// not serve asks, too.
func (a *App) buildOptIn(context.Context) error {
	c := a.cfg.Newsletter
	var err error
	a.optIn, err = audience.NewConfirmations(audience.ConfirmationParts{
		Subscribers: a.audience, Tokens: a.signedTokens, Submit: a.outbox.Intake.Submit,
		ServiceURL: func() string { return a.settings.Current().ServiceURL },
	}, audience.ConfirmationOptions{Expiry: c.ConfirmExpiry, PerDay: c.ConfirmPerDay, Registry: a.metrics})
	return err
}
