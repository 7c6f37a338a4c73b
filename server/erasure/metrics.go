package erasure

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/outbox"
)

// metrics count erasures. Without a registry they export nothing.
type metrics struct {
	done    prometheus.Counter
	waiting prometheus.Gauge
	erased  *prometheus.CounterVec // by place
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		done: auto.Counter("postroom_erasures_total", "Erasures of people that this process finished."),
		waiting: auto.Gauge("postroom_erasures_waiting",
			"Unfinished erasures of people, in all processes."),
		erased: auto.Counters("postroom_erased_total", "Items erased, by place.", "place", "subscribers",
			"lists", "campaigns", outbox.PlaceOutbox, outbox.PlaceDeadLetters, outbox.PlaceMessages,
			outbox.PlaceEvents, "documents", "deliveries", "suppressions"),
	}
}
