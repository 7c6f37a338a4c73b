package app

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/suppression"
)

// newSuppressions returns the store of addresses that get no mail. Any process may sweep it; one at a time
// does.
func newSuppressions(db *redisdb.DB, c config.Suppression, log *slog.Logger, metrics prometheus.Registerer) (
	*suppression.Store, error) {
	soft := c.SoftBounces
	if soft == 0 {
		soft = -1 // never, for suppression
	}
	return suppression.New(db, suppression.Options{
		Instance: c.Scope == "instance", SoftBounces: soft, SoftWindow: c.SoftWindow, SoftExpiry: c.SoftExpiry,
		HardExpiry: c.HardBounceExpiry, ComplaintExpiry: c.ComplaintExpiry, Logger: log, Registry: metrics,
	})
}
