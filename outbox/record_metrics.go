package outbox

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the outbox's counters. Without a registry they are not exported.
type metrics struct {
	accepted   *prometheus.CounterVec
	senders    *prometheus.CounterVec
	attempts   *prometheus.CounterVec
	recipients *prometheus.CounterVec
	ended      *prometheus.CounterVec
	exhausted  prometheus.Counter
	recovered  *prometheus.CounterVec
	duration   prometheus.Histogram
	delay      prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		accepted: counter("postroom_outbox_submits_total", "Messages that reached the outbox by result: queued, hit (repeated idempotency key), skipped (all recipients are suppressed), refused (503: Redis is unavailable or nearly full, or outbox.maxLive is reached).", "result", "queued",
			"hit", "refused", "skipped"),
		senders: counter("postroom_outbox_senders_refused_total",
			"Messages refused because their account may not use a sender or gateway, by where it was named; attempt means that the account lost the sender after the message was accepted.", "field", "From", "Sender",
			"Resent-From", "Resent-Sender", "envelope", "gateway", "attempt"),
		attempts: counter("postroom_outbox_attempts_total", "Delivery attempts by outcome: sent, delayed (will be retried), failed, dropped (failed, with no dead letters), released (didn't take place), deferred (limit reached), held (the account has trouble), suppressed (no relay was asked), late (the lease was lost). in_doubt is counted in addition.", "outcome",
			string(sent), string(delayed), string(failed), string(dropped), string(released), string(deferred),
			string(held), string(suppressed), "late", "in_doubt"),
		recipients: counter("postroom_outbox_recipients_total", "Recipients that an attempt finished or found suppressed, by result.", "result",
			rcptSent, rcptFailed, rcptSuppressed),
		ended: counter("postroom_outbox_messages_ended_total", "Messages that finished, by result.", "result",
			resultSent, resultFailed, resultCancelled, resultSuppressed),
		exhausted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "postroom_outbox_messages_exhausted_total",
			Help: "Messages that failed because they ran out of attempts or reached deliverBy.",
		}),
		recovered: counter("postroom_outbox_recovered_total", "Messages that the sweeper queued again, by what was lost: lease (their worker died), owed (their task was never confirmed), task (their task disappeared).",
			"lost", "lease", "owed", "task"),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "postroom_outbox_attempt_seconds", Help: "Duration of delivery attempts.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2.5, 14),
		}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "postroom_outbox_delivery_delay_seconds",
			Help:    "Time from the submit, or from sendAt, until a relay accepted the message, including retries.",
			Buckets: prometheus.ExponentialBuckets(0.005, 3, 15),
		}),
	}
	if reg != nil {
		reg.MustRegister(m.accepted, m.senders, m.attempts, m.recipients, m.ended, m.exhausted, m.recovered,
			m.duration, m.delay)
	}
	return m
}

// refused counts a message that its account may not send because of a field; a nil err isn't counted.
func (m *metrics) refused(field string, err error) error {
	if err != nil {
		m.senders.WithLabelValues(field).Inc()
	}
	return err
}

// counter makes a counter with all its label values preset to 0, so that the first count shows in a rate.
func counter(name, help, label string, values ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, v := range values {
		c.WithLabelValues(v)
	}
	return c
}
