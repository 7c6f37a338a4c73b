package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/postroom/postroom/internal/dialing"
)

// Options are the settings of a Tracer.
type Options struct {
	Endpoint string            // the collector's URL; without a path, /v1/traces is added. Empty for off
	Headers  map[string]string // for each request to it, such as Authorization
	Share    float64           // share of new traces, 0 to 1, that have spans. Callers' traces are as these say
	Version  string            // of Postroom
	Every    time.Duration     // spans are sent at the latest after this time; defaults to 5 s

	Logger   *slog.Logger          // nil means no log
	Registry prometheus.Registerer // nil means no metrics
}

const (
	mostWaiting = 2048             // spans in memory
	batch       = 512              // spans of a request
	longest     = 10 * time.Second // a request
)

// Tracer begins spans. Nil is off. It is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// New returns a Tracer, or nil without an endpoint. The collector need not answer yet.
func New(ctx context.Context, o Options) (*Tracer, error) {
	if o.Endpoint == "" {
		return nil, nil //nolint:nilnil // nil is off
	}
	at, err := url.Parse(o.Endpoint)
	if err != nil || at.Host == "" {
		return nil, errors.New("traces.endpoint: not a web address")
	}
	if at.Path == "" || at.Path == "/" {
		at.Path = "/v1/traces"
	}
	// The operator named the collector, which may be private.
	over := dialing.New(dialing.Options{AllowPrivate: true, Logger: o.Logger}).Client(dialing.HTTP{
		Timeout: longest, PerHost: 1, Environment: true})
	sending, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(at.String()),
		otlptracehttp.WithHeaders(o.Headers), otlptracehttp.WithHTTPClient(over),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", at.Host, err)
	}
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	counts := newCounts(o.Registry)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("traces not sent", "endpoint", at.Host, "error", err)
	}))
	provider := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Share))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "postroom"),
			attribute.String("service.version", o.Version))),
		sdk.WithSpanProcessor(counts),
		sdk.WithBatcher(counted{sending, counts}, sdk.WithMaxQueueSize(mostWaiting),
			sdk.WithMaxExportBatchSize(batch), sdk.WithBatchTimeout(cmp.Or(o.Every, 5*time.Second)),
			sdk.WithExportTimeout(3*longest)))
	return &Tracer{provider, provider.Tracer("github.com/postroom/postroom")}, nil
}

// ReadHeaders reads headers as the setting has them: "Name=value,Other=value".
func ReadHeaders(text string) (map[string]string, error) {
	headers := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, errors.New("traces.headers: must be Name=value, separated by commas")
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

// Close sends waiting spans, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// Root begins a span of ctx's trace, or of a new one.
func (t *Tracer) Root(ctx context.Context, name string, kind Kind) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, &Span{span}
}

// Child begins a span of ctx's trace. Without a trace it begins nothing.
func (t *Tracer) Child(ctx context.Context, name string, kind Kind) (context.Context, *Span) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, nil
	}
	return t.Root(ctx, name, kind)
}

// Past makes a span, as Child does, of a step that has ended. note adds its values.
func (t *Tracer) Past(ctx context.Context, name string, kind Kind, start, end time.Time, note func(*Span)) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return
	}
	_, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(start))
	note(&Span{span})
	span.End(trace.WithTimestamp(end))
}
