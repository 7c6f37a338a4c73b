package unsubscribe

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec // wish: leave, return; via; outcome: done, repeated, failed
	bad      *prometheus.CounterVec // reason: forged, unknown_key
	untold   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_unsubscribe_wishes_total",
			Help: "What recipients asked for on the unsubscribe pages and by the button of their mail client.",
		}, []string{"wish", "via", "outcome"}),
		bad: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_unsubscribe_bad_links_total",
			Help: "Visits with a link that is not ours or not whole, or whose key is not known any more.",
		}, []string{"reason"}),
		untold: auto.NewCounter(prometheus.CounterOpts{
			Name: "postroom_unsubscribe_untold_total",
			Help: "Requests that were carried out, but could not be told to timelines and webhooks.",
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
	return m
}
