package app

import (
	"context"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/feedback/unsubscribe"
)

// buildUnsubscribe makes what the unsubscribe pages ask. Only a process with an API has those.
func (a *App) buildUnsubscribe(context.Context) (err error) {
	if a.cfg.Role == "worker" {
		return nil
	}
	if a.cfg.Unsubscribe.GetUnsubscribes {
		a.log.Warn("following an unsubscribe link unsubscribes: scanners of links, which many mail servers have, will unsubscribe people who never asked", "setting", "unsubscribe.getUnsubscribes")
	}
	a.unsubscribe, err = unsubscribe.New(unsubscribe.Parts{
		Tokens: a.signedTokens, Suppressions: a.suppressions, Inbox: a.feedback, Senders: shownSenders{a.accounts},
	}, unsubscribe.Options{Logger: a.log, Registry: a.metrics})
	return err
}

// shownSenders tells recipients who an account is.
type shownSenders struct{ accounts *accounts.Accounts }

// Sender implements unsubscribe.Senders.
func (s shownSenders) Sender(ctx context.Context, account string) (unsubscribe.Sender, error) {
	info, err := s.accounts.Get(ctx, account)
	return unsubscribe.Sender{Name: info.Name, Address: info.Email, Locale: info.Locale}, err
}
