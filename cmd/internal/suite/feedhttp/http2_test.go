package feedhttp_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// overHTTP2 serves h over TLS and HTTP/2. connections counts the connections.
func overHTTP2(t *testing.T, h http.Handler) (s *httptest.Server, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	s = httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, connections
}

// TestHTTP2ServesConcurrentRequests: one TLS connection has pages, waiting requests, a stream, and answers in each
// format and coding, all at the same time.
func TestHTTP2ServesConcurrentRequests(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	s, connections := overHTTP2(t, x.handler)
	x.server = s
	stream := listen(t, s, "/_feeds/stream/kv?after=1")
	stream.want(t, retry, moved)
	if stream.resp.Proto != "HTTP/2.0" {
		t.Fatalf("%s", stream.resp.Proto)
	}
	waiting := []<-chan answer{later(t, s, "/_feeds/fetch/kv?after=1&wait=1m"),
		later(t, s, "/_feeds/http-feeds/kv?lastEventId=kv:1:0:1&timeout=60000")}
	x.await(t, 2)
	for _, accept := range []string{"application/json", "application/x-ndjson", batch} {
		if got := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept", accept); got.status != 200 ||
			got.header.Get("Content-Type") != accept {
			t.Errorf("%+v", got)
		}
	}
	x.exec(t, `INSERT INTO kv VALUES (2, ?)`, strings.Repeat("text ", 1000))
	x.publish(t, x.feed)
	for _, got := range waiting {
		if a := <-got; a.status != 200 || !strings.Contains(a.body, "text text") {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if got := stream.next(t); !strings.HasPrefix(got, `id: 2.9k3f2c7adq|data: {"position":"2"`) {
		t.Errorf("%s", got)
	}
	for _, coding := range []string{"gzip", "zstd"} {
		first := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept-Encoding", coding)
		if body := unzipped(t, first, coding); !strings.Contains(terms.Fix(body), `"cursor":"2.9k3f2c7adq"`) {
			t.Errorf("%s", body)
		}
		if again := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept-Encoding", coding, "If-None-Match",
			first.header.Get("ETag")); again.status != 304 {
			t.Errorf("%d", again.status)
		}
	}
	page, err := x.client("kv").Fetch(t.Context(), rowfeed.Request{})
	if err != nil || len(page.Entries) != 2 {
		t.Errorf("our client: %+v, %v", page, err)
	}
	checkProblem(t, ask(t, s, "GET", "/_feeds/fetch/kv?after=9"), problemOf("cursor-ahead", 409))
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// pipes is a network without real time, for a bubble of synctest.
type pipes struct {
	net.Listener
	made chan net.Conn
	end  context.Context
	stop context.CancelFunc
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.end.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.stop()
	return p.Listener.Close()
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.made <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble serves h over HTTP/2 through pipes. Its clients use the bubble's clock.
func inBubble(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	p := &pipes{Listener: s.Listener, made: make(chan net.Conn)}
	p.end, p.stop = context.WithCancel(context.Background())
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	s.Listener, s.Config.Protocols = p, &plain
	s.Start()
	s.Client().Transport = &http.Transport{DialContext: p.dial, Protocols: &plain}
	t.Cleanup(s.Close)
	return s
}

// TestHTTP2IdleStreamOutlivesWriteTimeout: the write timeout does not end a stream that waits for longer. The
// bubble's clock makes the test independent of the speed of the machine.
func TestHTTP2IdleStreamOutlivesWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = time.Second
		page, asked := pageOf(t, 1, 100), 0
		source := stubSource{fetch: func(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
			if asked++; asked > 1 {
				select {
				case <-ctx.Done():
				case <-time.After(3 * bound):
				}
			}
			return page, ctx.Err()
		}}
		s := inBubble(t, feedhttp.NewHandler(stubCatalog{source},
			&feedhttp.Config{WriteTimeout: bound, Heartbeat: time.Hour}))
		stream := listen(t, s, "/_feeds/stream/kv")
		if stream.resp.Proto != "HTTP/2.0" {
			t.Fatalf("%s", stream.resp.Proto)
		}
		stream.want(t, retry)
		for range 2 {
			if got := stream.next(t); !strings.HasPrefix(got, "id: 1") {
				t.Fatalf("%.100s", got)
			}
		}
		stream.end()
	})
}

// TestHTTP2CancelledRequestsEnd: if a client cancels a waiting request, a stream, or a page half-way, the server ends
// its work for it. Other requests of the connection continue.
func TestHTTP2CancelledRequestsEnd(t *testing.T) {
	large := pageOf(t, 8, 1<<20) // more than a window of HTTP/2, so that the server has to wait for the client
	began, ended := make(chan struct{}, 10), make(chan string, 10)
	source := stubSource{fetch: func(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
		if req.Wait == 0 {
			return large, nil
		}
		<-ctx.Done()
		return rowfeed.Page{}, ctx.Err()
	}}
	h := feedhttp.NewHandler(stubCatalog{source}, &feedhttp.Config{WriteTimeout: time.Hour})
	s, connections := overHTTP2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		defer func() { ended <- r.URL.Path }()
		h.ServeHTTP(w, r)
	}))
	other := listen(t, s, "/_feeds/stream/kv?after=1")
	other.want(t, retry)
	<-began
	for _, path := range []string{"/_feeds/fetch/kv?wait=1m", "/_feeds/http-feeds/kv?timeout=60000", "/_feeds/fetch/kv",
		"/_feeds/stream/kv"} {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			req, _ := http.NewRequestWithContext(ctx, "GET", s.URL+path, nil)
			resp, err := s.Client().Do(req)
			if err == nil {
				_, err = resp.Body.Read(make([]byte, 10))
				<-ctx.Done()
				_ = resp.Body.Close()
			}
			gone <- err
		}()
		<-began
		cancel()
		<-gone
		if got := <-ended; !strings.HasPrefix(path, got) {
			t.Errorf("%s has ended instead of %s", got, path)
		}
	}
	if got := other.next(t); !strings.HasPrefix(got, `id: 1`) {
		t.Errorf("%.100s", got)
	}
	if got := ask(t, s, "GET", "/_feeds/nothing/here"); got.status != 404 || connections.Load() != 1 {
		t.Errorf("%d, %d connections", got.status, connections.Load())
	}
	other.end()
	if got := []string{<-ended, <-ended}; fmt.Sprint(got) != "[/_feeds/nothing/here /_feeds/stream/kv]" {
		t.Errorf("%q", got)
	}
}
