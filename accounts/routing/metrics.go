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

// kinds of relay: an account's own, and gateways. Single relays are no labels: there may be thousands.
var kinds = []string{"relay", "gateway"}

func newMetrics(reg prometheus.Registerer, b *breakers, g *connectionLimits) *metrics {
	auto := telemetry.MetricsOf(reg)
	tries := auto.CountersBy("postroom_route_tries_total", "Relays tried, by what that says about the relay.",
		"kind", "outcome")
	rests := auto.CountersBy("postroom_route_rests_total",
		"Times a relay that failed again and again was given a rest.", "kind")
	waits := auto.CountersBy("postroom_route_waits_total",
		"Messages deferred before any relay was tried.", "reason")
	m := &metrics{tries: map[string]map[outcome]prometheus.Counter{}, rests: map[string]prometheus.Counter{},
		waits: map[string]prometheus.Counter{}, failovers: auto.Counter("postroom_route_failovers_total",
			"Times a message was taken to a further relay within one attempt.")}
	for _, kind := range kinds {
		m.rests[kind], m.tries[kind] = rests.WithLabelValues(kind), map[outcome]prometheus.Counter{}
		for _, o := range outcomes {
			m.tries[kind][o] = tries.WithLabelValues(kind, string(o))
		}
		promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{
			Name: "postroom_route_resting", Help: "Relays that are paused after failures, or about to be tried after a pause.",
			ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return b.count(kind == "gateway") })
	}
	auto.GaugeFunc("postroom_route_away",
		"Relays that have not answered this process since an attempt failed or is overdue.",
		func() float64 { return float64(len(g.away())) })
	for _, reason := range []string{"limit", "connections", "unavailable"} {
		m.waits[reason] = waits.WithLabelValues(reason)
	}
	return m
}
