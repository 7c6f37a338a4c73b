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
			Help: "Documents put into the search index; a message is put again with each change.",
		}),
		failures: auto.NewCounter(prometheus.CounterOpts{
			Name: "postroom_documents_failures_total",
			Help: "Jobs of the queue documents that failed and are tried again.",
		}),
		lag: gauge("postroom_documents_lag_seconds",
			"Age of the oldest change in the job indexed last, when it was done."),
		behind: gauge("postroom_documents_behind_seconds",
			"Age of the oldest change that the search index lacks. 0 if it is up to date."),
		documents: gauge("postroom_documents", "Messages in the search index, reported by its indexer."),
		bytes: gauge("postroom_documents_bytes",
			"Size of the search index on disk, reported by its indexer."),
		searches: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "postroom_documents_search_seconds",
			Help:    "How long searches took, by outcome: answered, refused (the query is wrong), failed.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{searchAnswered, searchRefused, searchFailed} {
		m.searches.WithLabelValues(outcome)
	}
	return m
}
