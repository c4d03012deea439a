package tracing_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink/webhook"
	"github.com/rowfeed/rowfeed/cmd/tracing"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// span returns the last span of an operation.
func span(t *testing.T, all *tracetest.SpanRecorder, op string) sdk.ReadOnlySpan {
	t.Helper()
	ended := all.Ended()
	for i := len(ended) - 1; i >= 0; i-- {
		if ended[i].Name() == "rowfeed "+op {
			return ended[i]
		}
	}
	t.Fatalf("no span of %s among %d", op, len(ended))
	return nil
}

func attributeOf(s sdk.ReadOnlySpan, name string) string {
	for _, a := range s.Attributes() {
		if a.Key == attribute.Key(name) {
			return a.Value.String()
		}
	}
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// traced returns a feed of an empty table, and the recorder of its spans.
func traced(t *testing.T) (*tracetest.SpanRecorder, feedtype.Tracer, *testdb.Database, *rowfeed.DB, *rowfeed.Feed) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)))
	d := testdb.SQLite.New(t)
	db, err := rowfeed.Open(t.Context(), d.OpenTapped(t, testdb.Hooks{}), sqlite.New(), &rowfeed.Config{Tracer: tracer})
	must(t, err)
	_, err = db.Migrate(t.Context())
	must(t, err)
	d.Exec(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`)
	f, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
	must(t, err)
	return spans, tracer, d, db, f
}

// A published batch, a page over HTTP, the handling of its entries and their delivery have a span each. The spans of
// one operation are linked, and the receiver can continue the trace.
func TestSpans(t *testing.T) {
	spans, tracer, d, db, f := traced(t)
	_, err := f.Publish(t.Context())
	must(t, err)
	if n := len(spans.Ended()); n != 0 {
		t.Errorf("%d spans of a publisher with nothing to do", n)
	}
	d.Exec(t, `INSERT INTO kv VALUES (1, 'a'), (2, 'b')`)
	_, err = f.Publish(t.Context())
	must(t, err)

	var mu sync.Mutex
	var sent []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header.Get("Traceparent"))
	}))
	defer receiver.Close()
	feeds := feedhttp.NewHandler(feedhttp.Of(db), &feedhttp.Config{Tracer: tracer})
	var serving sync.WaitGroup // an answer may arrive before the end of its span
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		feeds.ServeHTTP(w, r)
	}))
	defer server.Close()
	to, err := webhook.New(webhook.Config{URL: receiver.URL, AllowPrivate: true})
	must(t, err)
	defer to.Close()
	r := &relay.Relay{Name: "hook", Source: &feedhttp.Client{URL: server.URL, Feed: "kv", Tracer: tracer}, DB: db,
		Sink: to}
	must(t, r.RunOnce(t.Context()))
	serving.Wait()

	for op, want := range map[string][3]string{ // entries, consumer, kind
		feedtype.SpanPublish: {"2", "", "internal"},
		feedtype.SpanConsume: {"2", "hook", "consumer"},
		feedtype.SpanDeliver: {"2", "hook", "producer"},
	} {
		s := span(t, spans, op)
		if attributeOf(s, "rowfeed.feed") != "kv" || attributeOf(s, "rowfeed.entries") != want[0] ||
			attributeOf(s, "rowfeed.consumer") != want[1] || s.SpanKind().String() != want[2] {
			t.Errorf("%s: %v, %s", op, s.Attributes(), s.SpanKind())
		}
	}
	for child, parent := range map[string]string{
		feedtype.SpanServe: feedtype.SpanRequest, feedtype.SpanFetch: feedtype.SpanServe,
		feedtype.SpanDeliver: feedtype.SpanConsume,
	} {
		c, p := span(t, spans, child), span(t, spans, parent)
		if c.Parent().SpanID() != p.SpanContext().SpanID() || c.SpanContext().TraceID() != p.SpanContext().TraceID() {
			t.Errorf("%s does not belong to %s: %v, %v", child, parent, c.Parent(), p.SpanContext())
		}
	}
	read := span(t, spans, feedtype.SpanRequest).SpanContext()
	if links := span(t, spans, feedtype.SpanConsume).Links(); len(links) != 1 ||
		links[0].SpanContext.SpanID() != read.SpanID() || links[0].SpanContext.TraceID() != read.TraceID() {
		t.Errorf("what was consumed does not lead to its page: %v, not %v", links, read)
	}
	delivered := span(t, spans, feedtype.SpanDeliver).SpanContext()
	if want := "00-" + delivered.TraceID().String() + "-" + delivered.SpanID().String() + "-01"; len(sent) != 1 ||
		sent[0] != want {
		t.Errorf("the receiver got %v, not %s", sent, want)
	}

	before := len(spans.Ended())
	_, err = (&feedhttp.Client{URL: server.URL, Feed: "none", Tracer: tracer}).Fetch(t.Context(), feedtype.Request{})
	if !errors.Is(err, feedtype.UnknownFeed) {
		t.Fatal(err)
	}
	serving.Wait()
	for _, op := range []string{feedtype.SpanServe, feedtype.SpanRequest} {
		if s := span(t, spans, op); attributeOf(s, "error.type") != "unknown-feed" ||
			s.Status().Description != "unknown-feed" {
			t.Errorf("%s: %v %v", op, s.Attributes(), s.Status())
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/_feeds/"+strings.Repeat("x", 1000), nil)
	must(t, err)
	req.Header.Set("Traceparent", "what")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	resp.Body.Close()
	serving.Wait()
	if s := span(t, spans, feedtype.SpanServe); s.Parent().IsValid() || attributeOf(s, "rowfeed.feed") != "" ||
		len(spans.Ended()) <= before {
		t.Errorf("a stranger's: %v %v", s.Parent(), s.Attributes())
	}
}

// The span of handling a page is linked to the span that fetched the page, even if the page was read ahead.
func TestSpansReadAhead(t *testing.T) {
	spans, _, d, db, f := traced(t)
	d.Exec(t, `INSERT INTO kv VALUES (1, 'a'), (2, 'b'), (3, 'c')`)
	_, err := f.Publish(t.Context())
	must(t, err)
	c := &rowfeed.Consumer{Name: "copy", Source: f, DB: db, Options: rowfeed.ConsumerOptions{Limit: 1},
		Handle: func(context.Context, *sql.Tx, []feedtype.Entry) error { return nil }}
	must(t, c.RunOnce(t.Context()))
	read, led := map[trace.SpanID]bool{}, map[trace.SpanID]bool{}
	for _, s := range spans.Ended() {
		switch s.Name() {
		case "rowfeed fetch":
			read[s.SpanContext().SpanID()] = true
		case "rowfeed consume":
			if len(s.Links()) != 1 || !read[s.Links()[0].SpanContext.SpanID()] {
				t.Fatalf("%v is no link to a page", s.Links())
			}
			led[s.Links()[0].SpanContext.SpanID()] = true
		}
	}
	if len(led) != 3 {
		t.Errorf("batches lead to %d pages", len(led))
	}
}

// TestFromEnvironment (O4): the standard variables send spans to a collector, without the texts of errors.
func TestFromEnvironment(t *testing.T) {
	var mu sync.Mutex
	var got collector.ExportTraceServiceRequest
	var raw, path, header string
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &got)
		}
		if err != nil {
			t.Error(err)
		}
		raw, path, header = string(body), r.URL.Path, r.Header.Get("X-Key")
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer at.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", at.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
	tracer, shutdown, err := tracing.FromEnvironment(t.Context(), os.Getenv)
	must(t, err)
	_, end := feedtype.StartSpan(t.Context(), tracer, feedtype.Span{Op: feedtype.SpanPublish, Feed: "kv"})
	end(feedtype.SpanEnd{Err: &feedtype.Error{Code: feedtype.Unavailable, Cause: "hunter2",
		Err: errors.New("password=hunter2")}})
	shutdown()
	mu.Lock()
	defer mu.Unlock()
	if path != "/v1/traces" || header != "abc" || len(got.ResourceSpans) != 1 ||
		len(got.ResourceSpans[0].ScopeSpans) != 1 {
		t.Fatalf("%s %s %v", path, header, &got)
	}
	text := got.ResourceSpans[0].String()
	for _, want := range []string{`"rowfeed publish"`, `"service.name"`, `string_value:"rowfeed"`, `"unavailable"`} {
		if !strings.Contains(strings.ReplaceAll(text, ": ", ":"), want) && !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(raw, "hunter2") {
		t.Error("a password was sent")
	}

	for _, c := range []struct {
		env map[string]string
		on  bool
		err error
	}{
		{nil, false, nil},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, nil},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": at.URL}, true, nil},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at.URL, "OTEL_SDK_DISABLED": "true"}, false, nil},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at.URL, "OTEL_TRACES_EXPORTER": "none"}, false, nil},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false,
			feedtype.InvalidRequest},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at.URL, "OTEL_TRACES_EXPORTER": "zipkin"}, false,
			feedtype.InvalidRequest},
	} {
		tracer, shutdown, err := tracing.FromEnvironment(context.Background(),
			func(name string) string { return c.env[name] })
		if (tracer != nil) != c.on || !errors.Is(err, c.err) {
			t.Errorf("%v: %v, %v", c.env, tracer, err)
		}
		shutdown()
	}
}
