package feedhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// serving starts a server of one page, for clients of HTTP/1.1 or HTTP/2.
func serving(t *testing.T, page rowfeed.Page, http2 bool, cfg *feedhttp.Config,
	ended chan<- struct{}) *httptest.Server {
	t.Helper()
	source := stubSource{fetch: func(context.Context, rowfeed.Request) (rowfeed.Page, error) { return page, nil },
		info: func(context.Context) (*rowfeed.Info, error) {
			return &rowfeed.Info{Name: "kv", Key: page.Key, Columns: page.Columns}, nil
		}}
	h := feedhttp.NewHandler(stubCatalog{source}, cfg)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	if s.EnableHTTP2 = http2; http2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	return s
}

// TestPageOfManyPartsIsWhole: a page that is sent while it is made has all its entries, and a Client reads it.
func TestPageOfManyPartsIsWhole(t *testing.T) {
	page := pageOf(t, 5000, 200)
	for _, http2 := range []bool{false, true} {
		s := serving(t, page, http2, nil, make(chan struct{}, 10))
		for accept, want := range map[string]string{
			"application/json":     string(page.AppendJSON(nil, "kv")) + "\n",
			"application/x-ndjson": string(page.AppendLines(nil)),
		} {
			got := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept", accept)
			if got.status != 200 || got.body != want || got.header.Get("Content-Type") != accept ||
				got.header.Get("Content-Length") != "" ||
				got.header.Get("Rowfeed-Columns") == "" || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("HTTP/2 %v, %s: %d, %d bytes of %d, %v", http2, accept, got.status, len(got.body), len(want),
					got.header)
			}
			head := ask(t, s, "HEAD", "/_feeds/fetch/kv", "Accept", accept)
			if head.status != 200 || head.body != "" || head.header.Get("Content-Type") != accept {
				t.Errorf("HEAD: %+v", head)
			}
		}
		c := &feedhttp.Client{URL: s.URL, Feed: "kv", HTTP: s.Client()}
		got, err := c.Fetch(t.Context(), rowfeed.Request{})
		if err != nil || len(got.Entries) != len(page.Entries) || got.Cursor != page.Cursor {
			t.Errorf("HTTP/2 %v: %d entries, cursor %q, %v", http2, len(got.Entries), got.Cursor, err)
		}
	}
}

// TestStalledReaderOfALargePageIsDisconnected: a client that stops reading in the middle of a page is disconnected.
// If it continues later, it gets an error, and no cursor.
func TestStalledReaderOfALargePageIsDisconnected(t *testing.T) {
	page := pageOf(t, 40, 1<<20) // more than all buffers of sockets
	for _, http2 := range []bool{false, true} {
		for _, accept := range []string{"application/json", "application/x-ndjson"} {
			ended := make(chan struct{}, 1)
			s := serving(t, page, http2, &feedhttp.Config{WriteTimeout: 10 * time.Millisecond}, ended)
			req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/_feeds/fetch/kv", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", accept)
			req.Header.Set("Accept-Encoding", "identity")
			resp, err := s.Client().Do(req)
			if err != nil {
				continue // the client was too slow with the first bytes
			}
			<-ended
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil || strings.Contains(string(body), `"cursor"`) {
				t.Errorf("HTTP/2 %v, %s: %d bytes, %v", http2, accept, len(body), err)
			}
		}
	}
}

// TestClientRefusesAnAbortedPage: a Client returns an error for a part of a page.
func TestClientRefusesAnAbortedPage(t *testing.T) {
	page := pageOf(t, 1000, 200)
	whole := page.AppendJSON(nil, "kv")
	for _, length := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(whole[:length])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}))
		c := &feedhttp.Client{URL: s.URL, Feed: "kv", HTTP: s.Client()}
		if got, err := c.Fetch(t.Context(), rowfeed.Request{}); !errors.Is(err, rowfeed.Unavailable) ||
			got.Cursor != "" || got.Entries != nil {
			t.Errorf("%d bytes: %+v, %v", length, got, err)
		}
	}
}
