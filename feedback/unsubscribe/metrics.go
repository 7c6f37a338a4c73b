package unsubscribe

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec // labels: wish (leave, return), via, outcome (done, repeated, failed)
	bad      *prometheus.CounterVec // label: reason (forged, unknown_key, preview)
	unsent   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_unsubscribe_wishes_total",
			Help: "Unsubscribe and resubscribe requests, by the way they came and their outcome.",
		}, []string{"wish", "via", "outcome"}),
		bad: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_unsubscribe_bad_links_total",
			Help: "Visits with a link that is forged, damaged, of a preview, or signed with an unknown key.",
		}, []string{"reason"}),
		unsent: auto.NewCounter(prometheus.CounterOpts{
			Name: "postroom_unsubscribe_unreported_total",
			Help: "Requests that were carried out, but are missing in timelines and webhooks.",
		}),
	}
	for _, via := range []Via{OneClick, Page, Preferences, Link} {
		for _, outcome := range []string{"done", "repeated", "failed"} {
			m.requests.WithLabelValues("leave", string(via), outcome)
			if via == Page || via == Preferences {
				m.requests.WithLabelValues("return", string(via), outcome)
			}
		}
	}
	m.bad.WithLabelValues("forged")
	m.bad.WithLabelValues("unknown_key")
	m.bad.WithLabelValues("preview")
	return m
}
