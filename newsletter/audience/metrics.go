package audience

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts what became of subscriptions. Without a registry it exports nothing.
type metrics struct {
	changes *prometheus.CounterVec // by new state
	skipped *prometheus.CounterVec // by reason
	lines   *prometheus.CounterVec // of imports, by result
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		changes: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_subscriptions_total",
			Help: "Subscriptions that became pending, subscribed or left, or were removed.",
		}, []string{"state"}),
		skipped: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_subscriptions_skipped_total",
			Help: "Subscriptions that were not made, because the person left or is suppressed.",
		}, []string{"reason"}),
	}
	m.lines = auto.NewCounterVec(prometheus.CounterOpts{
		Name: "postroom_subscriber_import_lines_total",
		Help: "Lines of imported files of subscribers, without those of dry runs.",
	}, []string{"result"})
	for _, result := range [...]string{"added", "changed", "known", "repeated", "bad"} {
		m.lines.WithLabelValues(result)
	}
	for _, state := range [...]string{"pending", "subscribed", "left", "removed"} {
		m.changes.WithLabelValues(state)
	}
	for _, reason := range [...]string{"left", "unsubscribe", "hard_bounce", "spam_report", "manual"} {
		m.skipped.WithLabelValues(reason)
	}
	return m
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
