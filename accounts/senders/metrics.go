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
			"Requests for a mail that verifies an address of an account, by result.",
			"result", "sent", "repeated", "limited", "refused"),
		links: auto.Counters("postroom_senders_links_total",
			"Uses of the links in these emails, including invalid links, by outcome.",
			"outcome", "verified", "repeated", "old", "forged"),
	}
}
