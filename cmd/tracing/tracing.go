// Package tracing creates OpenTelemetry spans of rowfeed's operations: published batches, fetched pages, consumed and
// delivered entries, and HTTP requests at client and server. The header traceparent (W3C Trace Context) continues the
// trace of a request at the server, and that of a delivery at its receiver.
//
//	t := tracing.New(provider)
//	db, err := rowfeed.Open(ctx, pool, postgres.New(), &rowfeed.Config{Tracer: t})
//	feedhttp.NewHandler(feedhttp.Of(db), &feedhttp.Config{Tracer: t})
//
// Spans contain the names of feeds and consumers, and error codes. They never contain keys, rows, statements or the
// texts of errors, which may contain a password.
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

// New returns a Tracer that uses a provider. The caller shuts the provider down.
func New(provider trace.TracerProvider) feedtype.Tracer {
	return &tracer{spans: provider.Tracer(Scope)}
}

type tracer struct {
	spans   trace.Tracer
	carrier propagation.TraceContext
}

// kinds are the span kinds of the operations. Others are internal.
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

// code returns the code of an error, without its text.
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

// carrier has headers that are only written, or only read.
type carrier struct {
	set func(name, value string)
	get func(name string) string
}

func (c carrier) Get(name string) string { return c.get(name) }
func (c carrier) Set(name, value string) { c.set(name, value) }
func (c carrier) Keys() []string         { return nil }
