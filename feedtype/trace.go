package feedtype

import (
	"context"
	"sync/atomic"
)

// Tracer creates spans of rowfeed's operations; see Config.Tracer of package rowfeed. Package tracing implements it
// with OpenTelemetry. It is safe for concurrent use.
type Tracer interface {
	// Start begins the span of an operation. The returned context is for the operation. end is called once, when the
	// operation is over.
	Start(ctx context.Context, s Span) (_ context.Context, end func(SpanEnd))
	// Inject sets the headers that carry the trace of ctx to another process.
	Inject(ctx context.Context, set func(name, value string))
	// Extract returns a context that continues the trace of the headers, if they carry one.
	Extract(ctx context.Context, get func(name string) string) context.Context
}

// Span describes an operation that begins. Fields that do not apply to it are empty.
type Span struct {
	Op         string // one of the constants below
	Feed       string
	Consumer   string
	Shard      int // of ShardCount
	ShardCount int
	// Behind is the context of an earlier operation that this operation follows from without being a part of it: the
	// fetch of the page whose entries are handled. It may be nil.
	Behind context.Context
}

// SpanEnd is the result of an operation.
type SpanEnd struct {
	Entries int
	Err     error
}

// The operations that have spans.
const (
	SpanPublish = "publish" // a batch of a publisher, if there is something to publish
	SpanFetch   = "fetch"   // a page, including the wait for it
	SpanConsume = "consume" // the handling of entries by a consumer, including the commit of its cursor
	SpanDeliver = "deliver" // one call of a relay's sink
	SpanServe   = "serve"   // an HTTP request at the server
	SpanRequest = "request" // an HTTP request at the client
)

type tracerKey struct{}

// StartSpan begins a span with t or, if t is nil, with the tracer of ctx. Without a tracer it does nothing, and
// allocates nothing.
func StartSpan(ctx context.Context, t Tracer, s Span) (_ context.Context, end func(SpanEnd)) {
	if t == nil {
		if t, _ = ctx.Value(tracerKey{}).(Tracer); t == nil {
			return ctx, noSpan
		}
	}
	ctx, end = t.Start(ctx, s)
	if first, _ := ctx.Value(firstSpanKey{}).(*FirstSpan); first != nil {
		first.is(ctx)
	}
	return context.WithValue(ctx, tracerKey{}, t), end
}

// FirstSpan keeps the context of the first span that begins in a context.
type FirstSpan struct {
	of atomic.Pointer[context.Context]
}

type firstSpanKey struct{}

// WithFirstSpan returns a context whose first span is kept in the FirstSpan.
func WithFirstSpan(ctx context.Context) (context.Context, *FirstSpan) {
	first := &FirstSpan{}
	return context.WithValue(ctx, firstSpanKey{}, first), first
}

func (f *FirstSpan) is(ctx context.Context) { f.of.CompareAndSwap(nil, &ctx) }

// Context returns the context of the first span, or nil if none has begun. f may be nil.
func (f *FirstSpan) Context() context.Context {
	if f == nil {
		return nil
	}
	if of := f.of.Load(); of != nil {
		return *of
	}
	return nil
}

func noSpan(SpanEnd) {}

// TraceHeaders calls set with the headers that carry the trace of ctx to a receiver (traceparent of W3C Trace
// Context). It sets none if ctx is not traced.
func TraceHeaders(ctx context.Context, set func(name, value string)) {
	if t, _ := ctx.Value(tracerKey{}).(Tracer); t != nil {
		t.Inject(ctx, set)
	}
}
