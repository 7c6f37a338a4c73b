package erasure

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/postroom/postroom/outbox"
)

// metrics count erasures. Without a registry they export nothing.
type metrics struct {
	done    prometheus.Counter
	waiting prometheus.Gauge
	erased  *prometheus.CounterVec // by place
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		done: auto.NewCounter(prometheus.CounterOpts{Name: "postroom_erasures_total",
			Help: "Erasures of persons that this process finished."}),
		waiting: auto.NewGauge(prometheus.GaugeOpts{Name: "postroom_erasures_waiting",
			Help: "Erasures of persons that are not finished, in any process."}),
		erased: auto.NewCounterVec(prometheus.CounterOpts{Name: "postroom_erased_total",
			Help: "What was erased of persons."}, []string{"place"}),
	}
	for _, place := range []string{"subscribers", "lists", "campaigns", outbox.PlaceOutbox,
		outbox.PlaceDeadLetters, outbox.PlaceMessages, outbox.PlaceEvents, "documents", "deliveries",
		"suppressions"} {
		m.erased.WithLabelValues(place)
	}
	return m
}
