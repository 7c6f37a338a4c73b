package apisend

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/smtpsend"
)

// metrics counts the results of recipients. Without a registry nothing is exported.
type metrics struct {
	recipients *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	foreign    prometheus.Counter
	repeats    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		recipients: auto.CountersBy("postroom_api_recipients_total",
			"Recipients of messages through providers' APIs, by gateway type and result of one attempt.",
			"type",
			"outcome"),
		seconds: auto.HistogramsBy("postroom_api_request_seconds",
			"Time from the last byte of a request to the API of a provider to its answer.",
			[]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}, "type"),
		foreign: auto.Counter("postroom_api_foreign_total",
			"Recipients that an answer of a provider named and the message did not have."),
		repeats: auto.Counter("postroom_api_repeats_total",
			"Requests in doubt that were repeated with their key against duplicates."),
	}
}

// observe records one finished Send.
func (m *metrics) observe(kind api.GatewayType, r *smtpsend.Result) {
	if r.Timings.Dot > 0 {
		m.seconds.WithLabelValues(string(kind)).Observe(r.Timings.Dot.Seconds())
	}
	for _, one := range r.Recipients {
		outcome := "delivered"
		switch {
		case one.Err == nil:
		case one.Err.InDoubt:
			outcome = "in_doubt"
		case one.Err.Uncarried():
			outcome = "uncarried"
		default:
			outcome = string(one.Err.Verdict)
		}
		m.recipients.WithLabelValues(string(kind), outcome).Inc()
	}
}
