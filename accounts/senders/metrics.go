package senders

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	mails *prometheus.CounterVec // label: result (sent, repeated, limited, refused)
	links *prometheus.CounterVec // label: outcome (verified, repeated, old, forged)
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		mails: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_senders_mails_total",
			Help: "Requests for a mail that verifies an address of an account, by result.",
		}, []string{"result"}),
		links: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_senders_links_total",
			Help: "Uses of the links of these mails, and visits with one that does not work, by outcome.",
		}, []string{"outcome"}),
	}
	for _, result := range []string{"sent", "repeated", "limited", "refused"} {
		m.mails.WithLabelValues(result)
	}
	for _, outcome := range []string{"verified", "repeated", "old", "forged"} {
		m.links.WithLabelValues(outcome)
	}
	return m
}
