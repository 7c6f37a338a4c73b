package app

import (
	"github.com/postroom/postroom/suppression"
)

// openSuppressions makes the store of whom not to mail. Any process may sweep it; one does.
func (a *App) openSuppressions() error {
	c := a.cfg.Suppression
	soft := c.SoftBounces
	if soft == 0 {
		soft = -1 // what suppression takes for never
	}
	var err error
	a.suppressions, err = suppression.New(a.db, suppression.Options{
		PerAccount: c.Scope == "account", SoftBounces: soft, SoftWindow: c.SoftWindow, SoftExpiry: c.SoftExpiry,
		HardExpiry: c.HardBounceExpiry, ComplaintExpiry: c.ComplaintExpiry, Logger: a.log, Registry: a.metrics,
	})
	if err != nil {
		return err
	}
	a.life.onRun("suppressions", a.suppressions.Run)
	return nil
}
