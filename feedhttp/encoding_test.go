package feedhttp_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// unzipped is the body of an answer that must be compressed.
func unzipped(t *testing.T, a answer) string {
	t.Helper()
	if a.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("not compressed: %v", a.header)
	}
	z, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestCompression: pages of some size are compressed for who asks for it, whether they are
// sent whole or in parts, and for nobody else; streams and small pages never are.
func TestCompression(t *testing.T) {
	for _, rows := range []int{1, 30, 5000} {
		page := pageOf(t, rows, 200)
		want := string(page.AppendJSON(nil, "kv")) + "\n"
		s := serving(t, page, false, nil, make(chan struct{}, 100))
		for accept, zip := range map[string]bool{
			"": false, "gzip": true, "GZIP": true, "x-gzip": true, "*": true, "deflate, gzip;q=0.5": true, "gzip;q=0": false, "*, gzip;q=0": false, "*;q=0": false,
			"identity": false, "br": false, "gzip;q=0.2, identity;q=0.8": false, "gzip;q=2": false, "gzip;q=0.001": true, "zstd;q=1.0, gzip;q=0.8, *;q=0": true, "identity, gzip": true, ";;, gzip": true,
		} {
			got := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept-Encoding", accept)
			body := got.body
			if zip && rows > 1 {
				body = unzipped(t, got)
			} else if got.header.Get("Content-Encoding") != "" {
				t.Errorf("%d rows, %q: compressed", rows, accept)
			}
			if length := got.header.Get("Content-Length"); body != want || got.header.Get("Vary") != "Accept, Accept-Encoding" || length != "" && length != fmt.Sprint(len(got.body)) {
				t.Errorf("%d rows, %q: %d bytes, want %d; %v", rows, accept, len(body), len(want), got.header)
			}
			head := ask(t, s, "HEAD", "/_feeds/fetch/kv", "Accept-Encoding", accept)
			if head.body != "" || head.header.Get("Content-Encoding") != got.header.Get("Content-Encoding") {
				t.Errorf("HEAD: %v", head.header)
			}
		}
		lines := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept", "application/x-ndjson", "Accept-Encoding", "gzip")
		if rows > 1 && unzipped(t, lines) != string(page.AppendLines(nil)) {
			t.Error("other lines")
		}
		off := serving(t, page, false, &feedhttp.Config{NoCompression: true}, make(chan struct{}, 1))
		if got := ask(t, off, "GET", "/_feeds/fetch/kv", "Accept-Encoding", "gzip"); got.body != want || got.header.Get("Vary") != "Accept" {
			t.Errorf("switched off: %v", got.header)
		}
	}
}

// TestCompressionOfSharedPages: those who have waited for the same page get it as each asks for it.
func TestCompressionOfSharedPages(t *testing.T) {
	x := newLooking(t, nil, nil)
	var results []<-chan answer
	for i := range 12 {
		result := make(chan answer, 1)
		go func() {
			result <- ask(t, x.server, "GET", "/_feeds/fetch/kv?after=1&wait=1m", "Accept-Encoding", []string{"gzip", "identity"}[i%2])
		}()
		results = append(results, result)
	}
	x.await(t, 2)
	x.exec(t, `INSERT INTO kv VALUES (2, ?)`, strings.Repeat("text ", 1000))
	x.publish(t, x.feed)
	for i, result := range results {
		got := <-result
		if i%2 == 0 {
			got.body = unzipped(t, got)
		}
		if !strings.Contains(got.body, strings.Repeat("text ", 1000)) || !strings.HasSuffix(got.body, `"cursor":"2","more":false,"base64":[]}`+"\n") {
			t.Errorf("%d: %s", i, got.body)
		}
	}
	stream := listen(t, x.server, "/_feeds/stream/kv?after=2", "Accept-Encoding", "gzip")
	if stream.want(t, retry); stream.resp.Header.Get("Content-Encoding") != "" {
		t.Error("a stream is compressed")
	}
}

// zipping answers with compressed bytes, as a proxy may.
func zipping(body io.Reader) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.Copy(z, body)
		_ = z.Close()
	})
}

// TestClientInflates: our client takes compressed pages from afar, and does not ask for them
// where nothing is saved; what a server can blow up is bounded by MaxBytes.
func TestClientInflates(t *testing.T) {
	page := pageOf(t, 5000, 200)
	s := serving(t, page, false, nil, make(chan struct{}, 10))
	var asked []string
	afar := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		r.URL.Host = s.Listener.Addr().String()
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			asked = append(asked, fmt.Sprint(r.Header.Get("Accept-Encoding"), resp.Uncompressed))
		}
		return resp, err
	})}
	for url, want := range map[string]string{"http://feeds.example": "true", s.URL: "identityfalse", "http://localhost:1": "identityfalse", "http://[::1]:1": "identityfalse"} {
		asked = nil
		c := &feedhttp.Client{URL: url, Feed: "kv", HTTP: afar}
		got, err := c.Fetch(t.Context(), rowfeed.Request{})
		if err != nil || len(got.Entries) != 5000 || asked[0] != want {
			t.Errorf("%s: %d entries, %v, asked %q", url, len(got.Entries), err, asked)
		}
	}
	bomb := httptest.NewServer(zipping(io.LimitReader(zeros{}, 1<<30)))
	defer bomb.Close()
	far := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		r.URL.Host = bomb.Listener.Addr().String()
		return http.DefaultTransport.RoundTrip(r)
	})}
	c := &feedhttp.Client{URL: "http://feeds.example", Feed: "kv", HTTP: far, MaxBytes: 1 << 20}
	if _, err := c.Fetch(t.Context(), rowfeed.Request{}); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("a bomb: %v", err)
	}
	bomb.CloseClientConnections()
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("0"), len(p))), nil }
