package routing

import "github.com/prometheus/client_golang/prometheus"

// metrics counts tries, rests and waits. Without a registry they are not exported.
type metrics struct {
	tries     map[string]map[outcome]prometheus.Counter // by kind of relay
	rests     map[string]prometheus.Counter             // by kind of relay
	waits     map[string]prometheus.Counter             // by reason
	failovers prometheus.Counter
}

// kinds of relay: an account's own, and gateways. Single relays are no labels: there may be thousands.
var kinds = []string{"relay", "gateway"}

func newMetrics(reg prometheus.Registerer, b *breakers, g *connectionLimits) (*metrics, error) {
	tries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "postroom_route_tries_total", Help: "Relays tried, by what that says about the relay.",
	}, []string{"kind", "outcome"})
	rests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "postroom_route_rests_total", Help: "Times a relay that failed again and again was given a rest.",
	}, []string{"kind"})
	waits := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "postroom_route_waits_total", Help: "Messages told to come back later, before any relay was tried.",
	}, []string{"reason"})
	m := &metrics{tries: map[string]map[outcome]prometheus.Counter{}, rests: map[string]prometheus.Counter{},
		waits: map[string]prometheus.Counter{}}
	m.failovers = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "postroom_route_failovers_total",
		Help: "Times a message was taken to a further relay within one attempt.",
	})
	all := []prometheus.Collector{tries, rests, waits, m.failovers}
	for _, kind := range kinds {
		m.rests[kind], m.tries[kind] = rests.WithLabelValues(kind), map[outcome]prometheus.Counter{}
		for _, o := range outcomes {
			m.tries[kind][o] = tries.WithLabelValues(kind, string(o))
		}
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "postroom_route_resting", Help: "Relays that rest, or that are about to be tried after a rest.",
			ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return b.count(kind == "gateway") }))
	}
	all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "postroom_route_away", Help: "Relays that have not answered this process since an attempt failed or is overdue.",
	}, func() float64 { return float64(len(g.away())) }))
	for _, reason := range []string{"limit", "connections", "unavailable"} {
		m.waits[reason] = waits.WithLabelValues(reason)
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
