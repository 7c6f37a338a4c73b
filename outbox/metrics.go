package outbox

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/queue"
)

// metrics are the outbox's counters. Without a registry they count for nobody.
type metrics struct {
	accepted   *prometheus.CounterVec
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
		accepted: counter("postroom_outbox_submits_total", "Submits by what came of them.", "result", "queued", "hit", "refused", "skipped"),
		attempts: counter("postroom_outbox_attempts_total", "Delivery attempts by outcome.", "outcome",
			string(sent), string(delayed), string(failed), string(dropped), string(released), string(deferred), string(held), string(suppressed), "late", "in_doubt"),
		recipients: counter("postroom_outbox_recipients_total", "Recipients by what became of them.", "result", rcptSent, rcptFailed, rcptSuppressed),
		ended:      counter("postroom_outbox_messages_ended_total", "Messages by how they ended.", "result", resultSent, resultFailed, resultCancelled, resultSuppressed),
		exhausted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "postroom_outbox_messages_exhausted_total", Help: "Messages given up with their attempts, or their time to deliver by, used up.",
		}),
		recovered: counter("postroom_outbox_recovered_total", "Messages the sweeper woke, by what they had lost.", "lost", "lease", "owed", "task"),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "postroom_outbox_attempt_seconds", Help: "Length of delivery attempts.", Buckets: prometheus.ExponentialBuckets(0.002, 2.5, 14),
		}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "postroom_outbox_delivery_delay_seconds", Help: "From when a message was wanted out to when its relay took it.",
			Buckets: prometheus.ExponentialBuckets(0.005, 3, 15),
		}),
	}
	if reg != nil {
		reg.MustRegister(m.accepted, m.attempts, m.recipients, m.ended, m.exhausted, m.recovered, m.duration, m.delay)
	}
	return m
}

// counter makes a counter whose label values are preset, so that a rate can be taken from the first one counted.
func counter(name, help, label string, values ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, v := range values {
		c.WithLabelValues(v)
	}
	return c
}

// observe counts a recorded attempt and writes its line in the mail log.
func (b *Outbox) observe(ctx context.Context, c *claim, d decision) {
	b.metrics.attempts.WithLabelValues(string(d.outcome)).Inc()
	switch {
	case d.outcome == released:
		return
	case d.waits() && d.untried():
		b.mail.waits(ctx, c.id, d.reason, d.due)
		return
	}
	if len(d.stopped) > 0 {
		which := slices.Sorted(maps.Keys(d.stopped))
		b.metrics.recipients.WithLabelValues(rcptSuppressed).Add(float64(len(which)))
		b.mail.suppressed(ctx, c.id, c.envelope.addresses(which), string(d.stopped[which[0]].Reason))
	}
	if d.unasked {
		if d.outcome != delayed {
			b.metrics.ended.WithLabelValues(string(d.outcome)).Inc()
		}
		return
	}
	b.metrics.recipients.WithLabelValues(rcptSent).Add(float64(len(d.sent)))
	b.metrics.recipients.WithLabelValues(rcptFailed).Add(float64(len(d.lost)))
	took := d.took()
	b.metrics.duration.Observe(took.Seconds())
	if d.fresh {
		b.metrics.attempts.WithLabelValues("in_doubt").Inc()
	}
	if len(d.sent) > 0 {
		b.metrics.delay.Observe(max(0, d.at.Sub(c.scheduled).Seconds()))
		b.mail.sent(ctx, c.id, d.attempts, c.envelope.addresses(d.sent), d.response, took)
	}
	if d.spent {
		b.metrics.exhausted.Inc()
	}
	if len(d.lost) > 0 {
		b.mail.failed(ctx, c.id, d.attempts, c.envelope.addresses(d.lost), d.cause, d.doubt)
	}
	switch d.outcome {
	case held, deferred:
		b.mail.waits(ctx, c.id, d.reason, d.due)
	case delayed:
		b.mail.deferred(ctx, c.id, d.attempts, c.envelope.addresses(d.left), d.cause, d.due, d.doubt)
	case sent:
		b.metrics.ended.WithLabelValues("sent").Inc()
	case failed, dropped:
		b.metrics.ended.WithLabelValues("failed").Inc()
	}
}

// took is how long the attempt lasted.
func (d *decision) took() time.Duration {
	last := d.status.Log[len(d.status.Log)-1]
	return last.End.Sub(last.Start)
}

// collector counts the live messages when asked to.
type collector struct{ b *Outbox }

var liveDesc = prometheus.NewDesc("postroom_outbox_messages", "Live messages by state and lane; failed ones are dead letters.", []string{"state", "lane"}, nil)

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) { ch <- liveDesc }

// Collect implements prometheus.Collector. While Redis is away there is nothing to tell.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // Collect is given no context
	defer cancel()
	for _, lane := range lanesOf(queue.Submit) {
		var jobs api.Jobs
		if err := c.b.countMessages(ctx, []api.Lane{lane}, "", &jobs); err != nil {
			return
		}
		for state, n := range map[string]int{"waiting": jobs.Waiting, "paused": jobs.Paused, "active": jobs.Active, "delayed": jobs.Delayed, "failed": jobs.Failed} {
			ch <- prometheus.MustNewConstMetric(liveDesc, prometheus.GaugeValue, float64(n), state, string(lane))
		}
	}
}
