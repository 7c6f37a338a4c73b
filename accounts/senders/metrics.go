package senders

import (
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	mails *prometheus.CounterVec // by result
	links *prometheus.CounterVec // by outcome
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		mails: auto.Counters("postroom_senders_mails_total",
			"Requests for an email that verifies a sender address, by result.",
			"result", "sent", "repeated", "limited", "refused"),
		links: auto.Counters("postroom_senders_links_total",
			"Uses of links in these emails: verified, repeated, old (or no longer needed), forged.",
			"outcome", "verified", "repeated", "old", "forged"),
	}
}
