package webhooks

import (
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts deliveries. No label holds an endpoint, because there may be thousands.
type metrics struct {
	deliveries *prometheus.CounterVec // by outcome of a task's run
	latency    prometheus.Observer
	lag        prometheus.Gauge
	disabled   prometheus.Counter
}

// newMetrics returns the metrics and registers them, unless reg is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		deliveries: auto.Counters("postroom_webhook_deliveries_total",
			"Webhook attempts and decisions, by outcome: delivered, retrying, failed, skipped, held (endpoint slow "+
				"or failing), limited (rate limit), overflow (too many waiting).",
			"outcome", "delivered", "retrying", "failed", "skipped", "held", "limited", "overflow"),
		latency: auto.HistogramsBy("postroom_webhook_request_seconds",
			"How long webhook requests took, answered or not.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}).WithLabelValues(),
		lag: auto.Gauge("postroom_webhook_relay_lag_seconds",
			"Age of the last event when it was taken from the stream."),
		disabled: auto.Counter("postroom_webhook_endpoints_disabled_total",
			"Endpoints switched off because they failed for too long or answered 410."),
	}
}
