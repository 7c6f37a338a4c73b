package search

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the metrics of indexing and searching.
type metrics struct {
	indexed, failures prometheus.Counter
	lag, behind       prometheus.Gauge
	documents, bytes  prometheus.Gauge
	searches          *prometheus.HistogramVec // by outcome
}

// outcomes of a search.
const (
	searchAnswered = "answered"
	searchRefused  = "refused" // the query is invalid
	searchFailed   = "failed"
)

// newMetrics creates and registers the metrics. A nil registry registers nothing.
func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	gauge := func(name, help string) prometheus.Gauge {
		return auto.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		indexed: auto.NewCounter(prometheus.CounterOpts{
			Name: "postroom_documents_indexed_total",
			Help: "Documents written to the search index; each change of a message writes it again.",
		}),
		failures: auto.NewCounter(prometheus.CounterOpts{
			Name: "postroom_documents_failures_total",
			Help: "Indexing tasks that failed and will be retried.",
		}),
		lag: gauge("postroom_documents_lag_seconds",
			"Age of the oldest change in the last indexed task; the value stays while nothing happens."),
		behind: gauge("postroom_documents_behind_seconds",
			"How far back the search index misses changes; 0 if it's complete."),
		documents: gauge("postroom_documents", "Messages in the search index, reported by the process that maintains it."),
		bytes: gauge("postroom_documents_bytes",
			"Size of the search index on disk, reported by the process that maintains it."),
		searches: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "postroom_documents_search_seconds",
			Help:    "Duration of searches: answered, refused (invalid query) or failed.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{searchAnswered, searchRefused, searchFailed} {
		m.searches.WithLabelValues(outcome)
	}
	return m
}
