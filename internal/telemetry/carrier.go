package telemetry

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The headers of W3C Trace Context.
const (
	parentHeader = "traceparent"
	stateHeader  = "tracestate"
)

// mostState bounds the tracestate that is kept, in bytes: what W3C Trace Context section 3.3.1.5 asks for.
const mostState = 512

var format propagation.TraceContext

// Incoming returns a context with the trace of a request's headers, if there are valid ones.
func (t *Tracer) Incoming(ctx context.Context, h http.Header) context.Context {
	if t == nil || h.Get(parentHeader) == "" {
		return ctx
	}
	return t.Continue(ctx, carrier(h.Get(parentHeader), strings.Join(h.Values(stateHeader), ",")))
}

// Carrier returns a context's trace as it is stored: its traceparent and, after a space, its tracestate. It
// returns "" if there is none.
func (t *Tracer) Carrier(ctx context.Context) string {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	m := propagation.MapCarrier{}
	format.Inject(ctx, m)
	return carrier(m[parentHeader], m[stateHeader])
}

func carrier(parent, state string) string {
	if state == "" || len(state) > mostState {
		return parent
	}
	return parent + " " + state
}

// Continue returns a context with the trace of a carrier.
func (t *Tracer) Continue(ctx context.Context, carrier string) context.Context {
	if t == nil || carrier == "" {
		return ctx
	}
	parent, state, _ := strings.Cut(carrier, " ")
	return format.Extract(ctx, propagation.MapCarrier{parentHeader: parent, stateHeader: state})
}

// Outgoing sets the headers of a request that is made with ctx.
func (t *Tracer) Outgoing(ctx context.Context, h http.Header) {
	if t != nil {
		format.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

// ID returns the trace id of a carrier, 32 hexadecimal digits; empty if it has none.
func ID(carrier string) string {
	parts := strings.SplitN(carrier, "-", 3)
	if len(parts) < 3 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}
