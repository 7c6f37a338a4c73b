// Package telemetry makes the Prometheus metrics of all packages, and sends spans about the way of a message
// to an OpenTelemetry collector, by OTLP over HTTP in protobuf. A span is one step with its begin and its
// end. All spans of a message, from its submit to its webhooks, have one trace id, as does the program that
// submitted it if it sent a traceparent (W3C Trace Context).
//
// # Off
//
// A nil Tracer is off: it begins no spans, its methods allocate nothing, and its carriers are empty, so that
// nothing is stored.
//
// # Promises
//
//   - A span never waits for the collector. If that is unavailable, spans wait in memory, at most
//     [mostWaiting], and others are dropped. Close waits for its context only.
//   - Spans have ids, states and numbers, no addresses and no texts of mail: callers pass none, and the
//     errors of spans are codes.
//   - Code without a trace begins one only by [Tracer.Root], which picks Options.Share of them. Code that
//     continues a trace does as its traceparent says.
//
// It owns no keys in Redis. What a message stores of its trace is a carrier: see [Carrier].
package telemetry
