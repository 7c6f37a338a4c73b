package why

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/telemetry"
)

// metrics count questions. Without a registry they export nothing.
type metrics struct {
	answers *prometheus.CounterVec // by whether it arrived
	unasked *prometheus.CounterVec // by source
}

func newMetrics(reg prometheus.Registerer, sources []Source) *metrics {
	auto := telemetry.MetricsOf(reg)
	m := &metrics{
		answers: auto.Counters("postroom_why_answers_total",
			"Questions why an email didn't arrive, by whether it did.",
			"arrived", api.ArrivedYes, api.ArrivedNo, api.ArrivedNotYet, api.ArrivedUnknown),
		unasked: auto.Counters("postroom_why_unasked_total",
			"Sources that couldn't be asked for such a question.",
			"source", sourceLog, sourceWebhooks, sourceAccounts, sourceQueues),
	}
	for _, source := range sources {
		m.unasked.WithLabelValues(source.Name)
	}
	return m
}
