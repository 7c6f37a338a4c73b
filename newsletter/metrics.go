package newsletter

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts the mail of campaigns. Without a registry it exports nothing.
type metrics struct {
	mails   *prometheus.CounterVec // by state
	sending prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		mails: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_campaign_mails_total",
			Help: "Mails of campaigns that this process tried to send, by what came of them.",
		}, []string{"state"}),
		sending: auto.NewGauge(prometheus.GaugeOpts{
			Name: "postroom_campaigns_sending",
			Help: "Campaigns that this process is sending.",
		}),
	}
	for _, state := range [...]string{"sent", "deferred", "bounced", "failed", "inDoubt"} {
		m.mails.WithLabelValues(state)
	}
	return m
}
