package feedtype

import (
	"context"
	"sync/atomic"
)

// Tracer makes spans of what rowfeed does; Config.Tracer is one. Package tracing makes one
// of OpenTelemetry. It is safe for concurrent use.
type Tracer interface {
	// Start begins the span of an operation. The context is for whatever belongs to it; end is
	// called once, when it is over.
	Start(ctx context.Context, s Span) (_ context.Context, end func(SpanEnd))
	// Inject writes the headers that carry ctx's trace to somebody else.
	Inject(ctx context.Context, set func(name, value string))
	// Extract makes a context that goes on with the trace that headers carry, if they do.
	Extract(ctx context.Context, get func(name string) string) context.Context
}

// Span is an operation that begins. What does not belong to it is empty.
type Span struct {
	Op         string // one of those below
	Feed       string
	Consumer   string
	Shard      int // of ShardCount
	ShardCount int
	// Behind is the context of an operation that this one takes up though it is no part of it:
	// the reading of the page whose entries are handled. Nil: of none that is known.
	Behind context.Context
}

// SpanEnd is how an operation has ended.
type SpanEnd struct {
	Entries int
	Err     error
}

// The operations of which there are spans.
const (
	SpanPublish = "publish" // a batch, once it is known that something waits
	SpanFetch   = "fetch"   // a page, with the wait for it
	SpanConsume = "consume" // entries that a consumer handles, to the commit of its cursor
	SpanDeliver = "deliver" // one call of a relay's sink
	SpanServe   = "serve"   // an HTTP request, at the server
	SpanRequest = "request" // and at the client
)

type tracerKey struct{}

// StartSpan begins a span by a tracer or, where that is nil, by the one that ctx is traced by.
// Where there is none it does nothing, and costs nothing.
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

// FirstSpan is told of the first span that begins in a context, whoever begins it.
type FirstSpan struct {
	of atomic.Pointer[context.Context]
}

type firstSpanKey struct{}

// WithFirstSpan is a context in which the first span that begins is kept.
func WithFirstSpan(ctx context.Context) (context.Context, *FirstSpan) {
	first := &FirstSpan{}
	return context.WithValue(ctx, firstSpanKey{}, first), first
}

func (f *FirstSpan) is(ctx context.Context) { f.of.CompareAndSwap(nil, &ctx) }

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

// TraceHeaders hands the headers to set that carry ctx's trace to a receiver (traceparent, as
// W3C Trace Context has it): none where ctx is not traced.
func TraceHeaders(ctx context.Context, set func(name, value string)) {
	if t, _ := ctx.Value(tracerKey{}).(Tracer); t != nil {
		t.Inject(ctx, set)
	}
}
