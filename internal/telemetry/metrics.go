package telemetry

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics makes and registers the metrics of a package.
type Metrics struct{ auto promauto.Factory }

// MetricsOf returns the Metrics of a registry. With nil they are registered nowhere.
func MetricsOf(reg prometheus.Registerer) Metrics { return Metrics{promauto.With(reg)} }

// Counter makes a counter.
func (m Metrics) Counter(name, help string) prometheus.Counter {
	return m.auto.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// Counters makes a counter for each value of a label. So a rate is zero, and not absent, before the first.
func (m Metrics) Counters(name, help, label string, values ...string) *prometheus.CounterVec {
	c := m.CountersBy(name, help, label)
	for _, value := range values {
		c.WithLabelValues(value)
	}
	return c
}

// CountersBy makes counters by labels. The caller begins the ones whose labels are known.
func (m Metrics) CountersBy(name, help string, labels ...string) *prometheus.CounterVec {
	return m.auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Gauge makes a gauge.
func (m Metrics) Gauge(name, help string) prometheus.Gauge {
	return m.auto.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// GaugesBy makes gauges by labels.
func (m Metrics) GaugesBy(name, help string, labels ...string) *prometheus.GaugeVec {
	return m.auto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// GaugeFunc makes a gauge whose value is asked for when it is shown.
func (m Metrics) GaugeFunc(name, help string, value func() float64) {
	m.auto.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// HistogramsBy makes histograms by labels.
func (m Metrics) HistogramsBy(name, help string, buckets []float64,
	labels ...string) *prometheus.HistogramVec {
	return m.auto.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// Try makes metrics, and returns an error if the registry has one of their names already.
func Try[M any](newMetrics func() M) (made M, err error) {
	defer func() {
		switch refused := recover().(type) {
		case nil:
		case prometheus.AlreadyRegisteredError:
			err = fmt.Errorf("register metrics: %w", refused)
		default:
			panic(refused)
		}
	}()
	return newMetrics(), nil
}
