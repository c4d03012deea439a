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

	"github.com/klauspost/compress/zstd"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// unzipped is the body of an answer that must be compressed. The decoder accepts the windows that browsers accept.
func unzipped(t *testing.T, a answer, coding string) string {
	t.Helper()
	if a.header.Get("Content-Encoding") != coding {
		t.Fatalf("not compressed by %s: %v", coding, a.header)
	}
	var z io.Reader
	var err error
	if z, err = gzip.NewReader(strings.NewReader(a.body)); coding == "zstd" {
		z, err = zstd.NewReader(strings.NewReader(a.body), zstd.WithDecoderMaxWindow(8<<20),
			zstd.WithDecoderConcurrency(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestLargePagesAreCompressedOnRequest: pages of some size are compressed for clients that request it, whether the
// pages are sent whole or in parts. Streams and small pages are never compressed.
func TestLargePagesAreCompressedOnRequest(t *testing.T) {
	for _, rows := range []int{1, 30, 5000} {
		page := pageOf(t, rows, 200)
		want := string(page.AppendJSON(nil, "kv")) + "\n"
		s := serving(t, page, false, nil, make(chan struct{}, 100))
		for accept, coding := range map[string]string{
			"": "", "gzip": "gzip", "GZIP": "gzip", "x-gzip": "gzip", "*": "gzip", "deflate, gzip;q=0.5": "gzip",
			"gzip;q=0": "", "*, gzip;q=0": "", "*;q=0": "",
			"identity": "", "br": "", "gzip;q=0.2, identity;q=0.8": "", "gzip;q=2": "", "gzip;q=0.001": "gzip",
			"zstd;q=0.5, gzip;q=0.8, *;q=0": "gzip", "identity, gzip": "gzip", ";;, gzip": "gzip",
			"zstd": "zstd", "gzip, deflate, br, zstd": "zstd", "zstd;q=1.0, gzip;q=0.8, *;q=0": "zstd",
			"zstd;q=0, gzip": "gzip", "ZSTD;q=0.3, *;q=0.2": "zstd", "zstd;q=0.2, identity;q=0.8": "",
			"zstd;q=0.2, *;q=0.3": "gzip",
		} {
			got := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept-Encoding", accept)
			body := got.body
			if coding != "" && rows > 1 {
				body = unzipped(t, got, coding)
			} else if got.header.Get("Content-Encoding") != "" {
				t.Errorf("%d rows, %q: compressed", rows, accept)
			}
			if length := got.header.Get("Content-Length"); body != want ||
				got.header.Get("Vary") != "Accept, Accept-Encoding, Authorization, Cookie" || length != "" &&
				length != fmt.Sprint(len(got.body)) {
				t.Errorf("%d rows, %q: %d bytes, want %d; %v", rows, accept, len(body), len(want), got.header)
			}
			head := ask(t, s, "HEAD", "/_feeds/fetch/kv", "Accept-Encoding", accept)
			if head.body != "" || head.header.Get("Content-Encoding") != got.header.Get("Content-Encoding") {
				t.Errorf("HEAD: %v", head.header)
			}
		}
		for _, coding := range []string{"gzip", "zstd"} {
			lines := ask(t, s, "GET", "/_feeds/fetch/kv", "Accept", "application/x-ndjson", "Accept-Encoding", coding)
			if rows > 1 && unzipped(t, lines, coding) != string(page.AppendLines(nil)) {
				t.Error("other lines")
			}
		}
		off := serving(t, page, false, &feedhttp.Config{NoCompression: true}, make(chan struct{}, 1))
		if got := ask(t, off, "GET", "/_feeds/fetch/kv", "Accept-Encoding", "gzip"); got.body != want ||
			got.header.Get("Vary") != "Accept, Authorization, Cookie" {
			t.Errorf("switched off: %v", got.header)
		}
	}
}

// TestSharedPageIsSentInEachCoding: each of the requests that waited for the same page gets it in the coding that it
// accepts.
func TestSharedPageIsSentInEachCoding(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	var results []<-chan answer
	for i := range 12 {
		result := make(chan answer, 1)
		go func() {
			result <- ask(t, x.server, "GET", "/_feeds/fetch/kv?after=1&wait=1m", "Accept-Encoding",
				[]string{"gzip", "identity", "zstd"}[i%3])
		}()
		results = append(results, result)
	}
	x.await(t, 2)
	x.exec(t, `INSERT INTO kv VALUES (2, ?)`, strings.Repeat("text ", 1000))
	x.publish(t, x.feed)
	for i, result := range results {
		got := <-result
		if i%3 != 1 {
			got.body = unzipped(t, got, []string{"gzip", "", "zstd"}[i%3])
		}
		if !strings.Contains(got.body, strings.Repeat("text ", 1000)) ||
			!strings.HasSuffix(terms.Fix(got.body), `"cursor":"2.9k3f2c7adq","more":false,"base64":[]}`+"\n") {
			t.Errorf("%d: %s", i, got.body)
		}
	}
	stream := listen(t, x.server, "/_feeds/stream/kv?after=2", "Accept-Encoding", "gzip")
	if stream.want(t, retry); stream.resp.Header.Get("Content-Encoding") != "" {
		t.Error("a stream is compressed")
	}
}

// zipping answers with compressed bytes, as a proxy may.
func zipping(coding string, window int, body io.Reader) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", coding)
		z := io.WriteCloser(gzip.NewWriter(w))
		if coding == "zstd" {
			z, _ = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
		}
		_, _ = io.Copy(z, body)
		_ = z.Close()
	})
}

// remote is a client for which the server is on another machine. asked gets the Accept-Encoding of its requests.
func remote(s *httptest.Server, transport http.RoundTripper, asked func(*http.Request, *http.Response)) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		r.URL.Host = s.Listener.Addr().String()
		resp, err := transport.RoundTrip(r)
		if err == nil && asked != nil {
			asked(r, resp)
		}
		return resp, err
	})}
}

// TestClientDecompressesPages: a Client requests compressed pages from other machines, and not from its own.
func TestClientDecompressesPages(t *testing.T) {
	page := pageOf(t, 5000, 200)
	s := serving(t, page, false, nil, make(chan struct{}, 10))
	var asked []string
	far := remote(s, http.DefaultTransport, func(r *http.Request, resp *http.Response) {
		asked = append(asked, r.Header.Get("Accept-Encoding")+" "+resp.Header.Get("Content-Encoding"))
	})
	for url, want := range map[string]string{"http://feeds.example": "zstd, gzip zstd", s.URL: "identity ",
		"http://localhost:1": "identity ", "http://[::1]:1": "identity "} {
		asked = nil
		c := &feedhttp.Client{URL: url, Feed: "kv", HTTP: far}
		got, err := c.Fetch(t.Context(), rowfeed.Request{})
		if err != nil || len(got.Entries) != 5000 || asked[0] != want {
			t.Errorf("%s: %d entries, %v, asked %q", url, len(got.Entries), err, asked)
		}
	}
	for coding, readable := range map[string]bool{"gzip": true, "zstd": true, "br": false} {
		proxy := httptest.NewServer(zipping(coding, 8<<20, strings.NewReader(string(page.AppendJSON(nil, "kv")))))
		mixed := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			r.URL.Host = proxy.Listener.Addr().String()
			if !strings.Contains(r.URL.Path, "/fetch/") {
				r.URL.Host = s.Listener.Addr().String()
			}
			return http.DefaultTransport.RoundTrip(r)
		})}
		got, err := (&feedhttp.Client{URL: "http://feeds.example", Feed: "kv", HTTP: mixed}).Fetch(t.Context(),
			rowfeed.Request{})
		if readable != (err == nil) || readable && len(got.Entries) != 5000 {
			t.Errorf("%s by a proxy: %d entries, %v", coding, len(got.Entries), err)
		}
		proxy.Close()
	}
}

// TestClientLimitsDecompression: MaxBytes limits what a server can make of a few compressed bytes. The decoder's
// window limits what the client has to keep.
func TestClientLimitsDecompression(t *testing.T) {
	for coding, size := range map[string]int64{"gzip": 1 << 30, "zstd": 1 << 27} {
		bomb := httptest.NewServer(zipping(coding, 16<<20, io.LimitReader(zeros{}, size)))
		c := &feedhttp.Client{URL: "http://feeds.example", Feed: "kv", HTTP: remote(bomb, http.DefaultTransport, nil),
			MaxBytes: 1 << 20}
		_, err := c.Fetch(t.Context(), rowfeed.Request{})
		if want := map[string]string{"gzip": "more than 1048576 bytes",
			"zstd": "a window of more than 8 MiB"}[coding]; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a bomb of %s: %v", coding, err)
		}
		bomb.CloseClientConnections()
		bomb.Close()
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("0"), len(p))), nil }
