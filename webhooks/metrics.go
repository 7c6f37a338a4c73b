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
			"Webhook deliveries by outcome: delivered, retrying, failed, skipped (endpoint or task deleted, or endpoint disabled), held (endpoint slow or failing), limited (rate limit), overflow (too many pending, left to a replay).",
			"outcome", "delivered", "retrying", "failed", "skipped", "held", "limited", "overflow"),
		latency: auto.HistogramsBy("postroom_webhook_request_seconds",
			"Duration of webhook requests, with or without a response.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}).WithLabelValues(),
		lag: auto.Gauge("postroom_webhook_relay_lag_seconds",
			"Age of the last event when it was read from the stream; the value stays while nothing happens."),
		disabled: auto.Counter("postroom_webhook_endpoints_disabled_total",
			"Webhook endpoints that Postroom disabled, because they failed for too long or answered 410."),
	}
}
