package app

import (
	"context"

	"github.com/postroom/postroom/feedback/tracking"
)

// buildTracking makes what counts opens and clicks, in processes that answer HTTP. It is stopped after the server, so that the last hits are
// handed over, too.
func (a *App) buildTracking(context.Context) error {
	if a.cfg.Role == "worker" {
		return nil
	}
	visitors, err := a.ring.Derive("tracking visitors")
	if err != nil {
		return err
	}
	c := a.cfg.Tracking
	a.tracking, err = tracking.New(a.signedTokens, a.feedback, tracking.Options{
		Expiry: c.Expiry, Address: c.StoreAddress, Secret: visitors, Registry: a.metrics, Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.life.onRun("tracking", a.tracking.Run)
	return nil
}
