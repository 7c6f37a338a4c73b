package app

import (
	"cmp"
	"context"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/outbox/suppression"
)

// newSuppressions returns the store of addresses that get no mail. Any process may sweep it; one at a time
// does.
func newSuppressions(a *App) (*suppression.Store, error) {
	c := a.cfg.Suppression
	soft := c.SoftBounces
	soft = cmp.Or(soft, -1) // never, for suppression
	return suppression.New(a.db, suppression.Options{
		Instance: c.Scope == "instance", SoftBounces: soft, SoftWindow: c.SoftWindow, SoftExpiry: c.SoftExpiry,
		HardExpiry: c.HardBounceExpiry, ComplaintExpiry: c.ComplaintExpiry, Ring: a.ring, Logger: a.log,
		Registry: a.metrics,
		Room:     accounts.Room(a.accounts, "suppressions"), ImportRoom: importRoom(a),
	})
}

// importRoom checks the quota of an import and the memory of Redis, again for each part of the file.
func importRoom(a *App) suppression.Room {
	quota := accounts.Room(a.accounts, "importSize")
	return func(ctx context.Context, account string, count func() (used, more int, err error)) error {
		if err := a.outbox.Intake.AdmitsWrite(ctx, 64<<10); err != nil {
			return err
		}
		return quota(ctx, account, count)
	}
}

// quota returns the settings of quotas.
func quota(c config.Quotas) accounts.Quota {
	return accounts.Quota{Messages: c.Messages, Bytes: int(c.Bytes), PerDay: c.PerDay, Templates: c.Templates,
		Suppressions: c.Suppressions, ImportSize: int(c.ImportSize), Subscribers: c.Subscribers, Events: c.Events,
		Requests: c.Requests}
}

// requestsOf returns the request quota of an account's tokens.
func requestsOf(a *App) func(ctx context.Context, account string) (int, error) {
	return func(ctx context.Context, account string) (int, error) {
		q, err := a.accounts.Quota(ctx, account)
		return q.Requests, err
	}
}
