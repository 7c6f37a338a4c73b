package newsletter

import (
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts the mail of campaigns. Without a registry it exports nothing.
type metrics struct {
	mails   *prometheus.CounterVec // by state
	sending prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		mails: auto.Counters("postroom_campaign_mails_total",
			"Campaign emails that this process tried to send, by result.",
			"state", "sent", "deferred", "bounced", "failed", "inDoubt"),
		sending: auto.Gauge("postroom_campaigns_sending", "Campaigns that this process is sending."),
	}
}
