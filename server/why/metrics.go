package why

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/postroom/postroom/api"
)

// metrics count questions. Without a registry they export nothing.
type metrics struct {
	answers *prometheus.CounterVec // by whether it arrived
	unasked *prometheus.CounterVec // by source
}

func newMetrics(reg prometheus.Registerer, sources []Source) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		answers: auto.NewCounterVec(prometheus.CounterOpts{Name: "postroom_why_answers_total",
			Help: "Questions why mail did not arrive, by whether it did."}, []string{"arrived"}),
		unasked: auto.NewCounterVec(prometheus.CounterOpts{Name: "postroom_why_unasked_total",
			Help: "Sources that could not be asked for such a question."}, []string{"source"}),
	}
	for _, arrived := range []string{api.ArrivedYes, api.ArrivedNo, api.ArrivedNotYet, api.ArrivedUnknown} {
		m.answers.WithLabelValues(arrived)
	}
	for _, name := range []string{sourceLog, sourceWebhooks, sourceAccounts, sourceQueues} {
		m.unasked.WithLabelValues(name)
	}
	for _, source := range sources {
		m.unasked.WithLabelValues(source.Name)
	}
	return m
}
