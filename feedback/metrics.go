package feedback

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/provider"
	"github.com/postroom/postroom/suppression"
)

// metrics counts what is told and what becomes of it.
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

// ownSources are those who tell that are part of Postroom.
var ownSources = []string{"bounce", "track", "unsubscribe"}

// Sources lists who may tell, as metrics and [Status] name them.
func Sources() []string {
	var all []string
	for _, name := range provider.Names() {
		all = append(all, string(name))
	}
	return append(append(all, ownSources...), "other")
}

// knownSources are the Sources, made once: they are asked for with each fact.
var knownSources = sync.OnceValue(Sources)

// sourceOf is a source as a label.
func sourceOf(told string) string {
	if slices.Contains(knownSources(), told) {
		return told
	}
	return "other"
}

// newMetrics makes the metrics and registers them; a nil registry counts for nobody.
func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		received:   counter("postroom_feedback_received_total", "Facts about mail taken into the inbox.", "source"),
		applied:    counter("postroom_feedback_applied_total", "Facts taken out of the inbox, by what became of them.", "source", "result"),
		ignored:    counter("postroom_feedback_ignored_total", "Elements of webhooks that were understood and are of no use.", "provider", "what"),
		broken:     counter("postroom_feedback_broken_total", "Elements of webhooks that could not be read.", "provider"),
		refused:    counter("postroom_feedback_refused_total", "Webhooks of providers that were refused.", "provider", "reason"),
		suppressed: counter("postroom_feedback_suppressions_total", "Suppressions that facts asked for, those that stood already included.", "source", "reason"),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "postroom_feedback_dropped_total", Help: "Opens and clicks dropped because more came than could be applied.",
		}),
		full: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "postroom_feedback_full_total", Help: "Times that whoever told facts was asked to come back because the inbox was full.",
		}),
		waiting:    gauge("postroom_feedback_waiting", "Facts in the inbox, by stream.", "stream"),
		lag:        gauge("postroom_feedback_lag_seconds", "Age of the oldest fact of the piece applied last, when it was done.", "stream"),
		reconciled: counter("postroom_feedback_reconciled_total", "Events read from a provider's events API.", "provider", "result"),
		behind:     gauge("postroom_feedback_reconcile_behind_seconds", "How far back the events API of a provider was read last.", "provider"),
	}
	m.preset()
	if reg != nil {
		reg.MustRegister(m.received, m.applied, m.ignored, m.broken, m.refused, m.suppressed, m.dropped, m.full, m.waiting, m.lag, m.reconciled, m.behind)
	}
	return m
}

// preset makes every label value there is, so that a rate is zero and not absent.
func (m *metrics) preset() {
	for _, source := range Sources() {
		m.received.WithLabelValues(source)
		for _, result := range []outcome{applied, duplicate, full, unknown, failed} {
			m.applied.WithLabelValues(source, string(result))
		}
		for _, reason := range []suppression.Reason{suppression.HardBounce, suppression.SpamReport, suppression.Unsubscribe} {
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
	for _, result := range []string{"read", "broken", "failed"} {
		m.reconciled.WithLabelValues(string(provider.Mailgun), result)
	}
	m.behind.WithLabelValues(string(provider.Mailgun))
	for _, stream := range streams() {
		m.waiting.WithLabelValues(stream)
		m.lag.WithLabelValues(stream)
	}
}

// observeEvery is how often the inbox is counted.
const observeEvery = 10 * time.Second

// observe counts the inbox now and then.
func (f *Feedback) observe(ctx context.Context) {
	for pause(ctx, observeEvery) {
		c, err := f.keys.counted(ctx)
		if err != nil {
			continue // the next look says
		}
		for stream, n := range c.streams {
			f.metrics.waiting.WithLabelValues(stream).Set(float64(n))
		}
	}
}
