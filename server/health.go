package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
)

// instanceRoutes are about the process itself: health, metrics, and the documentation of the API.
type instanceRoutes struct {
	state    State
	draining *atomic.Bool
	log      *slog.Logger
	metrics  echo.HandlerFunc
	spec     func() (spec, error)
}

// getHealth answers as long as the process can: a supervisor restarts it when it does not. An unreachable
// Redis is no reason to restart.
func (i instanceRoutes) getHealth(context.Context, *noInput) (api.Health, error) {
	return api.Health{Success: true}, nil
}

// readyAnswer is api.Ready with the status that load balancers go by.
type readyAnswer struct{ api.Ready }

func (r readyAnswer) status() int {
	if r.Ready.Ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// probeTime is how long everything that readiness depends on may take together: a probe that waits longer has
// given up.
const probeTime = 2 * time.Second

// getReady reports whether work can be taken on. An unreachable Redis fails its check and leaves durability
// empty.
func (i instanceRoutes) getReady(ctx context.Context, _ *noInput) (readyAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	ready := api.Ready{Ready: true, Checks: rows(i.state.Checks(ctx))}
	if i.draining.Load() {
		ready.Checks = append(ready.Checks, api.Check{Name: "running", Message: "this instance is stopping"})
	}
	durability, err := i.state.Durability(ctx)
	if err != nil {
		i.log.Warn("durability unknown", "error", err)
		ready.Checks = append(ready.Checks, api.Check{Name: "durability", Message: "could not be asked for"})
	}
	durability.Warnings = rows(durability.Warnings)
	ready.Durability = durability
	for _, check := range ready.Checks {
		ready.Ready = ready.Ready && check.OK
	}
	return readyAnswer{ready}, nil
}
