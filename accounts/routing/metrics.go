package routing

import (
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts tries, rests and waits. Without a registry they are not exported.
type metrics struct {
	tries     map[string]map[outcome]prometheus.Counter // by kind of relay
	rests     map[string]prometheus.Counter             // by kind of relay
	waits     map[string]prometheus.Counter             // by reason
	failovers prometheus.Counter
}

// kinds of relay: an account's own, and gateways. Single relays aren't labels: there may be thousands.
var kinds = []string{"relay", "gateway"}

func newMetrics(reg prometheus.Registerer, b *breakers, g *connectionLimits) *metrics {
	auto := telemetry.MetricsOf(reg)
	tries := auto.CountersBy("postroom_route_tries_total", "Relays tried, by kind (relay or gateway) and outcome: delivered, refused (the message or its recipients), unreachable (connection, TLS or login failed), slowed (asked us to slow down), stalled (no reply in time), broken (connection lost).",
		"kind", "outcome")
	rests := auto.CountersBy("postroom_route_rests_total",
		"Times that a relay was paused, after 5 failures in a row or one more after a pause.", "kind")
	waits := auto.CountersBy("postroom_route_waits_total",
		"Messages delayed before any relay was tried, by reason.", "reason")
	m := &metrics{tries: map[string]map[outcome]prometheus.Counter{}, rests: map[string]prometheus.Counter{},
		waits: map[string]prometheus.Counter{}, failovers: auto.Counter("postroom_route_failovers_total",
			"Times that an attempt continued with another relay.")}
	for _, kind := range kinds {
		m.rests[kind], m.tries[kind] = rests.WithLabelValues(kind), map[outcome]prometheus.Counter{}
		for _, o := range outcomes {
			m.tries[kind][o] = tries.WithLabelValues(kind, string(o))
		}
		promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{
			Name: "postroom_route_resting", Help: "Relays that this process has paused, or is about to try again.",
			ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return b.count(kind == "gateway") })
	}
	auto.GaugeFunc("postroom_route_away",
		"Relays that haven't replied to this process since an attempt failed or became overdue.",
		func() float64 { return float64(len(g.away())) })
	for _, reason := range []string{"limit", "connections", "unavailable"} {
		m.waits[reason] = waits.WithLabelValues(reason)
	}
	return m
}
