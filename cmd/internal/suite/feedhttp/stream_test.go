package feedhttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/terms"
	"github.com/rowfeed/rowfeed/internal/test/testleaks"
)

// events reads a stream block by block.
type events struct {
	resp  *http.Response
	lines *bufio.Scanner
	end   context.CancelFunc
}

func listen(t *testing.T, s *httptest.Server, path string, header ...string) *events {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if h := resp.Header; resp.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" ||
		h.Get("Cache-Control") != "no-store" ||
		h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Accel-Buffering") != "no" ||
		h.Get("Content-Length") != "" {
		t.Fatalf("%s %v", resp.Status, h)
	}
	e := &events{resp: resp, lines: bufio.NewScanner(resp.Body), end: cancel}
	e.lines.Buffer(nil, 64<<20)
	return e
}

// next returns the next block, its lines joined by "|", or "" if the stream has ended normally. Ids are steady.
func (e *events) next(t *testing.T) string {
	t.Helper()
	var block []string
	for e.lines.Scan() {
		if e.lines.Text() == "" {
			return strings.Join(block, "|")
		}
		line := e.lines.Text()
		if strings.HasPrefix(line, "id: ") {
			line = terms.Fix(line)
		}
		block = append(block, line)
	}
	if err := e.lines.Err(); err != nil {
		t.Fatalf("the stream breaks off: %v", err)
	}
	return strings.Join(block, "|")
}

func (e *events) want(t *testing.T, blocks ...string) {
	t.Helper()
	for _, want := range blocks {
		if got := e.next(t); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

const (
	retry = "retry: 2000"
	beat  = ": nothing new"
	// moved is the first event of an idle stream after "1": a cursor without a term gets one.
	moved = "id: 1.9k3f2c7adq"
)

// TestStreamHasTheEntriesOfPages (M69): a stream of kvFixture's feed has the entries of the page from the same
// cursor, one per event, and then new entries. Each id is a cursor for pages and streams.
func TestStreamHasTheEntriesOfPages(t *testing.T) {
	x := kvFixture(t)
	all := listen(t, x.server, "/_feeds/stream/kv")
	// The first id still has the start mark, as the cursor of a page of one entry does.
	all.want(t, retry, "id: 1@4.9k3f2c7adq|data: "+entry1, "id: 4.9k3f2c7adq|data: "+entry4)
	some := listen(t, x.server, "/_feeds/stream/kv?after=2")
	some.want(t, retry, "id: 3~4.9k3f2c7adq|data: "+entry3, "id: 4.9k3f2c7adq|data: "+entry4)
	again := listen(t, x.server, "/_feeds/stream/kv?after=1@4")
	again.want(t, retry, "id: 4.9k3f2c7adq|data: "+entry4)

	f, err := x.db.Feed(t.Context(), "kv")
	if err != nil {
		t.Fatal(err)
	}
	x.exec(t, `UPDATE kv SET v = 'ann' WHERE id = 1`)
	x.exec(t, `DELETE FROM kv WHERE id = 3`)
	x.publish(t, f)
	for _, e := range []*events{all, some, again} {
		moved := strings.Replace(strings.Replace(entry1, `:"1"`, `:"5"`, 1), "jim", "ann", 1)
		e.want(t, "id: 5~6.9k3f2c7adq|data: "+moved,
			`id: 6.9k3f2c7adq|data: {"position":"6","shard":0,"op":"delete","key":{"id":3}}`)
	}
	head := ask(t, x.server, "HEAD", "/_feeds/stream/kv")
	if head.status != 200 || head.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
}

// TestLastEventIDWinsOverAfter (M69, H30): a client that reconnects sends its first URL and the last id that it has
// received. The stream continues after that id. An empty header is ignored.
func TestLastEventIDWinsOverAfter(t *testing.T) {
	x := kvFixture(t)
	last := "id: 4.9k3f2c7adq|data: " + entry4
	listen(t, x.server, "/_feeds/stream/kv?after=1", "Last-Event-ID", "3").want(t, retry, last)
	listen(t, x.server, "/_feeds/stream/kv?after=3", "Last-Event-ID", "").want(t, retry, last)
	checkProblem(t, ask(t, x.server, "GET", "/_feeds/stream/kv?after=3", "Last-Event-ID", "99"),
		feedhttp.Problem{Type: "cursor-ahead", Status: 409, Feed: "kv"})

	// The stream sends the cursor of "now" as an id at once. A client that loses the connection before the first
	// entry reconnects with it, and misses nothing.
	now := listen(t, x.server, "/_feeds/stream/kv?after=now")
	now.want(t, retry, "id: 4.9k3f2c7adq")
	f, err := x.db.Feed(t.Context(), "kv")
	if err != nil {
		t.Fatal(err)
	}
	// The stream also sends a head that has advanced without visible entries.
	x.exec(t, `INSERT INTO kv VALUES (9, 'a', 'b', NULL, NULL)`)
	x.exec(t, `DELETE FROM kv WHERE id = 9`)
	x.publish(t, f)
	late := listen(t, x.server, "/_feeds/stream/kv?after=4")
	late.want(t, retry, "id: 5.9k3f2c7adq")
}

// TestIdleStreamSendsHeartbeats: a stream without new entries sends comments.
func TestIdleStreamSendsHeartbeats(t *testing.T) {
	x := newPollFixture(t, &feedhttp.Config{Heartbeat: 5 * time.Millisecond}, nil)
	e := listen(t, x.server, "/_feeds/stream/kv?after=1")
	e.want(t, retry, moved, beat, beat, beat)
	x.exec(t, `INSERT INTO kv VALUES (2, 'b')`)
	x.publish(t, x.feed)
	got := e.next(t)
	for got == beat {
		got = e.next(t)
	}
	want := `id: 2.9k3f2c7adq|data: {"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,"v":"b"}}`
	if got != want {
		t.Errorf("got %s", got)
	}
}

// TestStreamEndsWithAProblem: a failure after the first page is sent as an event, and ends the stream. So does a
// panic.
func TestStreamEndsWithAProblem(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	e := listen(t, x.server, "/_feeds/stream/kv?after=1")
	e.want(t, retry, moved)
	if err := x.db.DropFeed(t.Context(), "kv"); err != nil {
		t.Fatal(err)
	}
	if got := e.next(t); !strings.HasPrefix(got, `event: problem|data: {"type":"urn:rowfeed:problem:unknown-feed",`) {
		t.Errorf("got %s", got)
	}
	e.want(t, "")

	first := true
	for _, c := range []struct {
		name string
		fail func() error
		want string
	}{
		{"error", func() error { return fmt.Errorf("password=secret") }, "failed"},
		{"panic", func() error { panic("secret") }, "failed"},
	} {
		first = true
		source := stubSource{fetch: func(context.Context, rowfeed.Request) (rowfeed.Page, error) {
			if first {
				first = false
				return rowfeed.Page{Cursor: "1"}, nil
			}
			return rowfeed.Page{}, c.fail()
		}}
		e := listen(t, serve(t, feedhttp.NewHandler(stubCatalog{source}, nil)), "/_feeds/stream/kv")
		e.want(t, retry, "id: 1")
		if got := e.next(t); !strings.HasPrefix(got,
			`event: problem|data: {"type":"urn:rowfeed:problem:`+c.want+`",`) || strings.Contains(got, "secret") {
			t.Errorf("%s: got %s", c.name, got)
		}
		e.want(t, "")
	}
}

// TestStreamEndsOnClose: Close ends streams without an error, so that a server can shut down.
func TestStreamEndsOnClose(t *testing.T) {
	testleaks.None(t)
	x := newPollFixture(t, nil, nil)
	var streams []*events
	for range 10 {
		e := listen(t, x.server, "/_feeds/stream/kv?after=1")
		e.want(t, retry, moved)
		streams = append(streams, e)
	}
	bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := x.server.Config.Shutdown(bounded); err != nil {
		t.Error(err)
	}
	for _, e := range streams {
		e.want(t, "")
		e.resp.Body.Close()
		e.end()
	}
	x.server.Close()
	x.sql.Close()
}

// TestStreamEndsWhenClientDisconnects: the handler of a stream returns when its client disconnects.
func TestStreamEndsWhenClientDisconnects(t *testing.T) {
	ended := make(chan struct{}, 1)
	x := newPollFixture(t, nil, func(s *httptest.Server) { s.Config.Handler = reportEnd(s.Config.Handler, ended) })
	e := listen(t, x.server, "/_feeds/stream/kv?after=1")
	e.want(t, retry, moved)
	e.end()
	<-ended
}

// reportEnd reports when a stream's handler has returned.
func reportEnd(h http.Handler, ended chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if strings.Contains(r.URL.Path, "/stream/") {
			ended <- struct{}{}
		}
	})
}

// TestStalledReaderOfAStreamIsDisconnected: a client that stops reading is disconnected. Until then the server has
// read a page for it, not the whole feed.
func TestStalledReaderOfAStreamIsDisconnected(t *testing.T) {
	ended := make(chan struct{}, 1)
	x := newPollFixture(t, &feedhttp.Config{WriteTimeout: 10 * time.Millisecond},
		func(s *httptest.Server) { s.Config.Handler = reportEnd(s.Config.Handler, ended) })
	for id := range 40 { // more than all buffers of sockets
		x.exec(t, `INSERT INTO kv VALUES (?, ?)`, id+2, strings.Repeat("x", 1<<20))
	}
	x.publish(t, x.feed)
	c, err := net.Dial("tcp", x.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /_feeds/stream/kv HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it is never cut off")
	}
	n, err := io.Copy(io.Discard, c) // reads what is in the buffers, until the end
	if n > 40<<20 || err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestStreamPausesIfSourceDoesNotWait (M69): if a source does not wait as requested, the stream pauses between
// fetches. If it waits, the stream fetches again at once. The test uses the bubble's clock.
func TestStreamPausesIfSourceDoesNotWait(t *testing.T) {
	const asked = 20
	for _, c := range []struct {
		name string
		wait bool
		page rowfeed.Page
		want time.Duration
	}{
		{"nothing new", false, rowfeed.Page{Cursor: "1"}, (asked - 2) * time.Second},
		{"more, which does not come", false, rowfeed.Page{Cursor: "1", More: true}, (asked - 2) * time.Second},
		{"it waits", true, rowfeed.Page{Cursor: "1"}, (asked - 1) * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			n := 0
			source := stubSource{fetch: func(_ context.Context, req rowfeed.Request) (rowfeed.Page, error) {
				if n++; n == asked {
					end()
				}
				if c.wait {
					<-time.After(req.Wait)
				}
				return c.page, nil
			}}
			h := feedhttp.NewHandler(stubCatalog{source}, &feedhttp.Config{Heartbeat: time.Minute})
			began := time.Now()
			h.ServeHTTP(httptest.NewRecorder(),
				httptest.NewRequest("GET", "/_feeds/stream/kv?after=1", nil).WithContext(ctx))
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: asked %d times in %s, want %s", c.name, asked, took, c.want)
			}
		})
	}
}
