package server

import (
	"errors"
	"fmt"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/access"
)

// NewMonitor returns a Server for /health, /ready, /metrics and /debug/pprof only. It is for processes
// without an API, and to keep metrics off the port of an API. As with New, it listens already.
//
// /health and /ready need no token: supervisors and load balancers have none, and the answers aren't secret.
// /metrics needs the scope metrics: metrics name relays and show the amount of mail, and a firewall may be
// misconfigured.
//
// Its requests are not counted: there is a probe every second.
func NewMonitor(access *access.Access, state State, o Options) (*Server, error) {
	if access == nil || state == nil {
		return nil, errors.New("new monitoring server: a part is missing")
	}
	o = o.withDefaults()
	s := prepare(Parts{Access: access, State: state}, o, prometheus.NewRegistry())
	s.setting = "monitor.listen"
	i := s.instance()
	s.mount([]group{{name: "Instance", routes: []route{i.healthRoute(), i.readyRoute(), i.metricsRoute(false),
		profileRoute()}}})
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("new monitoring server: %w", err)
	}
	return s, nil
}

func (i instanceRoutes) healthRoute() route {
	return get(api.GetHealth, public(), i.getHealth)
}

func (i instanceRoutes) readyRoute() route {
	return get(api.GetReady, public(), i.getReady)
}

func (i instanceRoutes) metricsRoute(apart bool) route {
	if apart {
		return plain("/metrics", public(), func(echo.Context) error {
			return fault.New(fault.NotFound, "", "Metrics are served at the address in monitor.listen")
		})
	}
	return plain("/metrics", whole(api.ScopeMetrics), i.metrics)
}
