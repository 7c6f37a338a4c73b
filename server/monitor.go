package server

import (
	"errors"
	"fmt"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/server/access"
)

// NewMonitor makes a Server that answers /health, /ready and /metrics, and nothing else: for a process that
// only delivers and has no API, and to keep metrics away from the port of an API. It listens from then on, as
// one made by New does.
//
// The first two need no token, since a supervisor or a load balancer has none and they tell no secret.
// Metrics need one of the scope metrics, as beside the API: they name relays and say how much mail there is,
// and an address that is meant for the inside is one rule of a firewall away from the outside.
//
// Its own requests are not counted: a probe every second would drown those that somebody waits for.
func NewMonitor(access *access.Access, state State, o Options) (*Server, error) {
	if access == nil || state == nil {
		return nil, errors.New("new monitoring server: a part is missing")
	}
	o = o.withDefaults()
	s := prepare(Parts{Access: access, State: state}, o, prometheus.NewRegistry())
	s.setting = "monitor.listen"
	i := s.instance()
	s.mount([]group{{name: "Instance", routes: []route{i.healthRoute(), i.readyRoute(), i.metricsRoute(false)}}})
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("new monitoring server: %w", err)
	}
	return s, nil
}

func (i instanceRoutes) healthRoute() route {
	return get("/health", public(), i.getHealth, "health", "Whether the process is alive")
}

func (i instanceRoutes) readyRoute() route {
	return get("/ready", public(), i.getReady, "ready",
		"Whether work can be taken on, and what this Redis can lose")
}

func (i instanceRoutes) metricsRoute(apart bool) route {
	if apart {
		return plain("/metrics", public(), func(echo.Context) error {
			return fault.New(fault.NotFound, "", "Metrics are at the address of the setting monitor.listen")
		})
	}
	return plain("/metrics", whole(api.ScopeMetrics), i.metrics)
}
