package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Kind says which side of a step a span is.
type Kind = trace.SpanKind

// The kinds of spans.
const (
	Internal = trace.SpanKindInternal
	Serves   = trace.SpanKindServer // answers a request
	Asks     = trace.SpanKindClient // makes a request, or speaks SMTP
)

// Span is a step that has begun. Nil means no span.
type Span struct{ span trace.Span }

// Set notes a value about the step. It must not be an address.
func (s *Span) Set(key, value string) {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// SetInt notes a number.
func (s *Span) SetInt(key string, value int) {
	if s != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// Fail notes that the step failed, with a code. It must be no text of others, which may have addresses.
func (s *Span) Fail(code string) {
	if s != nil {
		s.span.SetStatus(codes.Error, code)
	}
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}
