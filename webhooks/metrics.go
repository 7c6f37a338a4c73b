package webhooks

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts deliveries. No label holds an endpoint, because there may be thousands.
type metrics struct {
	deliveries *prometheus.CounterVec // by outcome of one run of a task
	latency    prometheus.Histogram
	lag        prometheus.Gauge
	disabled   prometheus.Counter
}

// newMetrics returns the metrics and registers them, unless reg is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		deliveries: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_webhook_deliveries_total",
			Help: "Webhook attempts and decisions, by outcome: delivered, retrying, failed, skipped, held (endpoint slow or failing), limited (rate limit), overflow (too many waiting).",
		}, []string{"outcome"}),
		latency: auto.NewHistogram(prometheus.HistogramOpts{
			Name:    "postroom_webhook_request_seconds",
			Help:    "How long webhook requests took, answered or not.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		lag: auto.NewGauge(prometheus.GaugeOpts{
			Name: "postroom_webhook_relay_lag_seconds",
			Help: "Age of the last event when it was taken from the stream.",
		}),
		disabled: auto.NewCounter(prometheus.CounterOpts{
			Name: "postroom_webhook_endpoints_disabled_total",
			Help: "Endpoints switched off because they failed for too long or answered 410.",
		}),
	}
	for _, outcome := range []string{"delivered", "retrying", "failed", "skipped", "held", "limited",
		"overflow"} {
		m.deliveries.WithLabelValues(outcome)
	}
	return m
}
