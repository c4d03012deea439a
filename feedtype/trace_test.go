package feedtype

import (
	"context"
	"testing"
)

// Spans without a tracer allocate nothing.
func TestSpansOffCostNothing(t *testing.T) {
	ctx := context.Background()
	set := func(string, string) { t.Error("a header") }
	n := testing.AllocsPerRun(100, func() {
		ctx, end := StartSpan(ctx, nil, Span{Op: SpanFetch, Feed: "kv", Consumer: "copy", ShardCount: 2})
		TraceHeaders(ctx, set)
		end(SpanEnd{Entries: 1})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSpansOff(b *testing.B) {
	b.ReportAllocs()
	ctx := context.Background()
	for b.Loop() {
		_, end := StartSpan(ctx, nil, Span{Op: SpanFetch, Feed: "kv"})
		end(SpanEnd{Entries: 1})
	}
}
