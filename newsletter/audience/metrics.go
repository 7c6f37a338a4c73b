package audience

import (
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what became of subscriptions. Without a registry it exports nothing.
type metrics struct {
	changes *prometheus.CounterVec // by new state
	skipped *prometheus.CounterVec // by reason
	lines   *prometheus.CounterVec // of imports, by result
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		changes: auto.Counters("postroom_subscriptions_total",
			"Subscriptions that became pending, subscribed or left, or were removed.",
			"state", "pending", "subscribed", "left", "removed"),
		skipped: auto.Counters("postroom_subscriptions_skipped_total",
			"Subscriptions that were not made, because the person left or is suppressed.",
			"reason", "left", "unsubscribe", "hard_bounce", "spam_report", "manual"),
		lines: auto.Counters("postroom_subscriber_import_lines_total",
			"Lines of imported subscriber files, without dry runs.",
			"result", "added", "changed", "known", "repeated", "bad"),
	}
}

// refused counts the subscriptions that a change did not make.
func (m *metrics) refused(d decision) {
	for _, skipped := range d.skipped {
		m.skipped.WithLabelValues(skipped.Reason).Inc()
	}
}

// changed counts the list changes of a change that was made.
func (m *metrics) changed(c *change) {
	for _, l := range c.lists {
		state := l.state.String()
		if l.state == None {
			state = "removed"
		}
		m.changes.WithLabelValues(state).Inc()
	}
}

// confirmMetrics counts confirmations. Without a registry it exports nothing.
type confirmMetrics struct {
	mails *prometheus.CounterVec // by result
	links *prometheus.CounterVec // by result
	forms *prometheus.CounterVec // by result
}

func newConfirmMetrics(reg prometheus.Registerer) *confirmMetrics {
	auto := telemetry.MetricsOf(reg)
	return &confirmMetrics{
		mails: auto.Counters("postroom_subscription_mails_total",
			"Mails that ask to confirm subscriptions, and welcomes.",
			"result", "asked", "repeated", "limited", "failed", "welcome"),
		links: auto.Counters("postroom_confirmations_total",
			"Links of confirmations that were followed or pressed.",
			"result", "confirmed", "again", "late", "forged"),
		forms: auto.Counters("postroom_subscription_forms_total", "Public forms that were sent in.",
			"result", "taken", "caught", "limited", "failed"),
	}
}
