package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// counts counts ended spans, and their results. Spans that did not fit in memory were made, and neither sent
// nor lost.
type counts struct {
	spans *prometheus.CounterVec
}

func newCounts(reg prometheus.Registerer) counts {
	return counts{MetricsOf(reg).Counters("postroom_traces_spans_total",
		"Spans made, sent and lost; the difference waits in memory or was dropped.", "state",
		"made", "sent", "lost")}
}

// OnStart implements sdk.SpanProcessor.
func (c counts) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (c counts) OnEnd(s sdk.ReadOnlySpan) {
	if s.SpanContext().IsSampled() {
		c.spans.WithLabelValues("made").Inc()
	}
}

// Shutdown implements sdk.SpanProcessor.
func (c counts) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdk.SpanProcessor.
func (c counts) ForceFlush(context.Context) error { return nil }

// counted is an exporter whose results are counted.
type counted struct {
	sdk.SpanExporter
	counts counts
}

// ExportSpans implements sdk.SpanExporter.
func (c counted) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	state := "sent"
	if err != nil {
		state = "lost"
	}
	c.counts.spans.WithLabelValues(state).Add(float64(len(spans)))
	return err
}
