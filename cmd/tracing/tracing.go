// Package tracing makes OpenTelemetry spans of what rowfeed does: of batches published, pages
// fetched, entries consumed and delivered, and of requests at both ends of HTTP. The trace of a
// request goes on at the server, and that of a delivery at its receiver, by the header
// traceparent (W3C Trace Context).
//
//	t := tracing.New(provider)
//	db, err := rowfeed.Open(ctx, pool, postgres.New(), &rowfeed.Config{Tracer: t})
//	feedhttp.NewHandler(feedhttp.Of(db), &feedhttp.Config{Tracer: t})
//
// Spans have the names of feeds, consumers and error codes. Keys, rows, statements and the
// texts of errors, which may show a password, are never in them.
package tracing

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/feedtype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the instrumentation scope of the spans.
const Scope = "github.com/rowfeed/rowfeed"

// New makes a Tracer of a provider, which the caller shuts down.
func New(provider trace.TracerProvider) feedtype.Tracer {
	return &tracer{spans: provider.Tracer(Scope)}
}

type tracer struct {
	spans   trace.Tracer
	carrier propagation.TraceContext
}

// kinds are those of the operations; what is not named is internal.
var kinds = map[string]trace.SpanKind{
	feedtype.SpanServe:   trace.SpanKindServer,
	feedtype.SpanRequest: trace.SpanKindClient,
	feedtype.SpanConsume: trace.SpanKindConsumer,
	feedtype.SpanDeliver: trace.SpanKindProducer,
}

// Start implements rowfeed.Tracer.
func (t *tracer) Start(ctx context.Context, s feedtype.Span) (context.Context, func(feedtype.SpanEnd)) {
	kind, known := kinds[s.Op]
	if !known {
		kind = trace.SpanKindInternal
	}
	attributes := make([]attribute.KeyValue, 0, 4)
	if s.Feed != "" {
		attributes = append(attributes, attribute.String("rowfeed.feed", s.Feed))
	}
	if s.Consumer != "" {
		attributes = append(attributes, attribute.String("rowfeed.consumer", s.Consumer))
	}
	if s.ShardCount > 1 || s.Shard != 0 {
		attributes = append(attributes, attribute.Int("rowfeed.shard", s.Shard))
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(attributes...)}
	if s.Behind != nil {
		options = append(options, trace.WithLinks(trace.LinkFromContext(s.Behind)))
	}
	ctx, span := t.spans.Start(ctx, "rowfeed "+s.Op, options...)
	return ctx, func(e feedtype.SpanEnd) {
		span.SetAttributes(attribute.Int("rowfeed.entries", e.Entries))
		if e.Err != nil {
			code := code(e.Err)
			span.SetAttributes(attribute.String("error.type", code))
			span.SetStatus(codes.Error, code)
		}
		span.End()
	}
}

// code names an error without its text.
func code(err error) string {
	var known *feedtype.Error
	switch {
	case errors.As(err, &known):
		return string(known.Code)
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline-exceeded"
	}
	return string(feedtype.Failed)
}

// Inject implements rowfeed.Tracer.
func (t *tracer) Inject(ctx context.Context, set func(name, value string)) {
	t.carrier.Inject(ctx, carrier{set: set})
}

// Extract implements rowfeed.Tracer.
func (t *tracer) Extract(ctx context.Context, get func(name string) string) context.Context {
	return t.carrier.Extract(ctx, carrier{get: get})
}

// carrier are headers that are only written, or only read.
type carrier struct {
	set func(name, value string)
	get func(name string) string
}

func (c carrier) Get(name string) string { return c.get(name) }
func (c carrier) Set(name, value string) { c.set(name, value) }
func (c carrier) Keys() []string         { return nil }
