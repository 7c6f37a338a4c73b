package unsubscribe

import (
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec // labels: wish (leave, return), via, outcome (done, repeated, failed)
	bad      *prometheus.CounterVec // label: reason (forged, unknown_key, preview)
	unsent   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	m := &metrics{
		requests: auto.CountersBy("postroom_unsubscribe_wishes_total",
			"Unsubscribe and resubscribe requests, by source and outcome.",
			"wish", "via", "outcome"),
		bad: auto.Counters("postroom_unsubscribe_bad_links_total",
			"Visits with a link that is forged, damaged, of a preview, or signed with an unknown key.",
			"reason", "forged", "unknown_key", "preview"),
		unsent: auto.Counter("postroom_unsubscribe_unreported_total",
			"Requests that were carried out, but are missing in timelines and webhooks."),
	}
	for _, via := range []Via{OneClick, Page, Preferences, Link} {
		for _, outcome := range []string{"done", "repeated", "failed"} {
			m.requests.WithLabelValues("leave", string(via), outcome)
			if via == Page || via == Preferences {
				m.requests.WithLabelValues("return", string(via), outcome)
			}
		}
	}
	return m
}
