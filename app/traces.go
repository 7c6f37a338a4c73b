package app

import (
	"context"
	"time"

	"github.com/postroom/postroom/internal/telemetry"
)

// lastTraces bounds the time in which the last spans are sent as Postroom stops.
const lastTraces = 5 * time.Second

// buildTraces builds what sends spans, if traces.endpoint names a collector.
func (a *App) buildTraces(ctx context.Context) error {
	c := a.cfg.Traces
	headers, err := telemetry.ReadHeaders(c.Headers.Reveal())
	if err != nil {
		return err
	}
	a.traces, err = telemetry.New(ctx, telemetry.Options{Endpoint: c.Endpoint, Headers: headers, Share: c.Share,
		Version: a.version, Logger: a.log, Registry: a.metrics})
	if err != nil || a.traces == nil {
		return err
	}
	a.life.onStop("traces", func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTraces)
		defer cancel()
		if err := a.traces.Close(ctx); err != nil { // an unavailable collector fails no stop
			a.log.Warn("the last traces were not sent", "error", err)
		}
		return nil
	})
	return nil
}
