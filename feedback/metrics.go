package feedback

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/outbox/suppression"
)

// metrics counts facts, by source and result.
type metrics struct {
	received   *prometheus.CounterVec // by source
	applied    *prometheus.CounterVec // by source, result
	ignored    *prometheus.CounterVec // by provider, what
	broken     *prometheus.CounterVec // by provider
	refused    *prometheus.CounterVec // by provider, reason
	suppressed *prometheus.CounterVec // by source, reason
	dropped    prometheus.Counter
	full       prometheus.Counter
	waiting    *prometheus.GaugeVec // by stream
	lag        *prometheus.GaugeVec // by stream
	reconciled *prometheus.CounterVec
	behind     *prometheus.GaugeVec
}

// Sources returns the sources of facts, as metrics and [Feedback.Status] name them: the providers, the parts
// of Postroom, and "other".
var Sources = sync.OnceValue(func() []string {
	var all []string
	for _, name := range provider.Names() {
		all = append(all, string(name))
	}
	return append(all, "bounce", "track", "unsubscribe", "other")
})

// sourceOf returns source as a label: one of Sources.
func sourceOf(source string) string {
	if slices.Contains(Sources(), source) {
		return source
	}
	return "other"
}

// newMetrics makes the metrics and registers them. With a nil registry nothing is counted.
func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	counter, gauge := auto.CountersBy, auto.GaugesBy
	m := &metrics{
		received: counter("postroom_feedback_received_total", "Reports about messages accepted into the inbox.", "source"),
		applied: counter("postroom_feedback_applied_total",
			"Reports processed from the inbox, by result.", "source", "result"),
		ignored: counter("postroom_feedback_ignored_total",
			"Elements of webhooks that are understood and not used.",
			"provider", "what"),
		broken: counter("postroom_feedback_broken_total", "Elements of webhooks that could not be read.",
			"provider"),
		refused: counter("postroom_feedback_refused_total", "Webhooks of providers that were refused.", "provider",
			"reason"),
		suppressed: counter("postroom_feedback_suppressions_total",
			"Suppressions that reports required, including existing ones.", "source", "reason"),
		dropped: auto.Counter("postroom_feedback_dropped_total",
			"Opens and clicks dropped because the inbox was full."),
		full: auto.Counter("postroom_feedback_full_total",
			"Times that reports were refused because the inbox was full."),
		waiting: gauge("postroom_feedback_waiting", "Reports in the inbox, by stream.", "stream"),
		lag: gauge("postroom_feedback_lag_seconds",
			"Age of the oldest report in the last batch when it was applied.", "stream"),
		reconciled: counter("postroom_feedback_reconciled_total", "Events read from a provider's events API.",
			"source", "result"),
		behind: gauge("postroom_feedback_reconcile_behind_seconds",
			"Age of the position up to which the events API of a provider is read.", "source"),
	}
	m.preset()
	return m
}

// preset creates every combination of labels, so that a rate is zero and not absent.
func (m *metrics) preset() {
	for _, source := range Sources() {
		m.received.WithLabelValues(source)
		for _, result := range []outcome{applied, duplicate, full, unknown, failed} {
			m.applied.WithLabelValues(source, string(result))
		}
		for _, reason := range []suppression.Reason{suppression.HardBounce, suppression.SpamReport,
			suppression.Unsubscribe} {
			m.suppressed.WithLabelValues(source, string(reason))
		}
	}
	for _, name := range provider.Names() {
		m.broken.WithLabelValues(string(name))
		m.ignored.WithLabelValues(string(name), "unknown")
		m.ignored.WithLabelValues(string(name), string(provider.Accepted))
		for _, reason := range []string{"unproven", "invalid", "too_large", "full", "unavailable", "failed"} {
			m.refused.WithLabelValues(string(name), reason)
		}
	}
	for _, stream := range streams() {
		m.waiting.WithLabelValues(stream)
		m.lag.WithLabelValues(stream)
	}
}

// forget removes the series of an events API that is no source any more.
func (m *metrics) forget(source string) {
	m.reconciled.DeletePartialMatch(prometheus.Labels{"source": source})
	m.behind.DeleteLabelValues(source)
}

// observeEvery is the interval between two counts of the inbox.
const observeEvery = 10 * time.Second

// observe updates the gauges of the inbox.
func (f *Feedback) observe(ctx context.Context) {
	for redisdb.Pause(ctx, observeEvery) {
		c, err := f.keys.counted(ctx)
		if err != nil {
			continue // the next round counts again
		}
		for stream, n := range c.streams {
			f.metrics.waiting.WithLabelValues(stream).Set(float64(n))
		}
	}
}
