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

// getHealth answers as long as the process can: a supervisor restarts a process that does not. An unreachable
// Redis is not a reason for a restart.
func (i instanceRoutes) getHealth(context.Context, *noInput) (api.Health, error) {
	return api.Health{Success: true}, nil
}

// readyAnswer is api.Ready with the status that load balancers read.
type readyAnswer struct{ api.Ready }

func (r readyAnswer) status() int {
	if r.Ready.Ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// probeTime is the timeout of all checks together. Probes do not wait longer.
const probeTime = 2 * time.Second

// getReady reports whether mail can be accepted. If Redis is unreachable, its check fails and durability is
// empty.
func (i instanceRoutes) getReady(ctx context.Context, _ *noInput) (readyAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	ready := api.Ready{Ready: true, Checks: i.state.Checks(ctx)}
	if i.draining.Load() {
		ready.Checks = append(ready.Checks, api.Check{Name: "running", Message: "this instance is stopping"})
	}
	durability, err := i.state.Durability(ctx)
	if err != nil {
		i.log.Warn("durability unknown", "error", err)
		ready.Checks = append(ready.Checks, api.Check{Name: "durability", Message: "could not be asked for"})
	}
	ready.Durability = durability
	for _, check := range ready.Checks {
		ready.Ready = ready.Ready && check.OK
	}
	return readyAnswer{ready}, nil
}
