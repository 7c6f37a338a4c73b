package audience

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// confirmMetrics counts confirmations. Without a registry it exports nothing.
type confirmMetrics struct {
	mails *prometheus.CounterVec // by result
	links *prometheus.CounterVec // by result
	forms *prometheus.CounterVec // by result
}

func newConfirmMetrics(reg prometheus.Registerer) *confirmMetrics {
	auto := promauto.With(reg)
	counter := func(name, help string, results ...string) *prometheus.CounterVec {
		c := auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
		for _, result := range results {
			c.WithLabelValues(result)
		}
		return c
	}
	return &confirmMetrics{
		mails: counter("postroom_subscription_mails_total",
			"Mails that ask to confirm subscriptions, and welcomes.",
			"asked", "repeated", "limited", "failed", "welcome"),
		links: counter("postroom_confirmations_total", "Links of confirmations that were followed or pressed.",
			"confirmed", "again", "late", "forged"),
		forms: counter("postroom_subscription_forms_total", "Public forms that were sent in.",
			"taken", "caught", "limited", "failed"),
	}
}
