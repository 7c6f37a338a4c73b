package app

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/suppression"
)

// newSuppressions returns the store of addresses that get no mail. Any process may sweep it; one at a time
// does.
func newSuppressions(db *redisdb.DB, c config.Suppression, of *accounts.Accounts, log *slog.Logger,
	metrics prometheus.Registerer) (*suppression.Store, error) {
	soft := c.SoftBounces
	if soft == 0 {
		soft = -1 // never, for suppression
	}
	return suppression.New(db, suppression.Options{
		Instance: c.Scope == "instance", SoftBounces: soft, SoftWindow: c.SoftWindow, SoftExpiry: c.SoftExpiry,
		HardExpiry: c.HardBounceExpiry, ComplaintExpiry: c.ComplaintExpiry, Logger: log, Registry: metrics,
		Room: accounts.Room(of, "suppressions"), ImportRoom: accounts.Room(of, "importSize"),
	})
}

// quota returns the settings of quotas.
func quota(c config.Quotas) accounts.Quota {
	return accounts.Quota{Messages: c.Messages, Bytes: int(c.Bytes), PerDay: c.PerDay, Templates: c.Templates,
		Suppressions: c.Suppressions, ImportSize: int(c.ImportSize)}
}
