package app

import (
	"context"

	"github.com/postroom/postroom/accounts/senders"
	"github.com/postroom/postroom/feedback/tracking"
	"github.com/postroom/postroom/feedback/unsubscribe"
)

// buildRecipients builds the handlers of links in mail: opens, clicks, and unsubscribe pages. Only a process
// with HTTP has them. Tracking stops after the server, so that the last hits are recorded too.
func (a *App) buildRecipients(context.Context) error {
	if !a.serves {
		return nil
	}
	visitors, err := a.ring.Derive("tracking visitors")
	if err != nil {
		return err
	}
	c := a.cfg.Tracking
	a.tracking, err = tracking.New(a.signedTokens, a.feedback.Append, tracking.Options{
		Expiry: c.Expiry, Address: c.StoreAddress, Secret: visitors, Registry: a.metrics, Logger: a.log,
		Blocked: func() []string { return a.settings.Current().BlockedLinks },
	})
	if err != nil {
		return err
	}
	a.life.onRun("tracking", a.tracking.Run)
	if a.cfg.Unsubscribe.GetUnsubscribes {
		a.log.Warn("following an unsubscribe link unsubscribes: link scanners of mail servers will unsubscribe recipients who never asked", "setting", "unsubscribe.getUnsubscribes")
	}
	a.unsubscribe, err = unsubscribe.New(unsubscribe.Parts{
		Tokens: a.signedTokens, Suppressions: a.suppressions, Append: a.feedback.Append, Account: a.accounts.Get,
	}, unsubscribe.Options{Logger: a.log, Registry: a.metrics, StoreAddress: c.StoreAddress})
	if err != nil {
		return err
	}
	a.senders, err = senders.New(senders.Parts{
		DB: a.db, Tokens: a.signedTokens, Accounts: a.accounts, Submit: a.outbox.Intake.Submit,
		URL: func() string { return a.settings.Current().ServiceURL },
	}, senders.Options{Account: a.cfg.Senders.MailAccount, Logger: a.log, Registry: a.metrics})
	return err
}
