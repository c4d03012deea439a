package feedhttp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"weak"
)

// TestFailedAnswerAbortsConnection: an answer that fails after its beginning was sent aborts the connection, over
// HTTP/1.1 and HTTP/2, compressed or not. It does not end like a complete answer. An answer that fails before is a
// problem.
func TestFailedAnswerAbortsConnection(t *testing.T) {
	var log bytes.Buffer
	h := NewHandler(nil, &Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	content := make([]byte, 32*writeChunk) // random bytes cannot be compressed
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	fails := func(at int) part {
		return func(dst []byte, i, size int) ([]byte, int) {
			if i == at {
				panic("no such value")
			}
			return append(dst, content[i*writeChunk:][:size]...), i + 1
		}
	}
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer h.recoverPanic(w, r)
			at := 30 // more than is compressed at once
			if r.URL.Path == "/none" {
				at = 0
			} else if r.URL.Path == "/soon" {
				at = 1
			}
			h.out.writeParts(w, r, jsonMediaType, fails(at), wantedCoding(r.Header.Values("Accept-Encoding")))
		}))
		if s.EnableHTTP2 = http2; http2 {
			s.StartTLS()
		} else {
			s.Start()
		}
		for _, zip := range []bool{false, true} {
			s.Client().Transport.(*http.Transport).DisableCompression = !zip
			for path, begun := range map[string]bool{"/": true, "/none": false, "/soon": !zip} {
				resp, err := s.Client().Get(s.URL + path)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				whole := resp.StatusCode == http.StatusInternalServerError &&
					resp.Header.Get("Content-Type") == problemMediaType && err == nil
				broken := resp.StatusCode == http.StatusOK && resp.ContentLength == -1 && err != nil &&
					len(body) < 31*writeChunk && bytes.HasPrefix(content, body)
				if resp.Proto != name || begun != broken || !begun != whole {
					t.Errorf("%s (%s), compressed %v, %s: %s, %d of %d bytes, %v",
						name, resp.Proto, zip, path, resp.Status, len(body), resp.ContentLength, err)
				}
			}
		}
		s.Close()
	}
	if !strings.Contains(log.String(), "no such value") {
		t.Errorf("the log says %q", log.String())
	}
}

// TestAllocationsDoNotGrowWithEntries: serving a page needs the same number of allocations for any number of entries,
// because its buffer is reused.
func TestAllocationsDoNotGrowWithEntries(t *testing.T) {
	h := NewHandler(nil, nil)
	r := httptest.NewRequestWithContext(context.Background(), "GET", "/", nil)
	allocations := func(entries int) float64 {
		row := bytes.Repeat([]byte("x"), 200)
		return testing.AllocsPerRun(100, func() {
			h.out.writeParts(httptest.NewRecorder(), r, jsonMediaType, func(dst []byte, i, _ int) ([]byte, int) {
				for ; i < entries; i++ {
					dst = append(dst, row...)
				}
				return dst, -1
			}, nil)
		})
	}
	// Only the recorder's own buffer grows.
	if few, many := allocations(1), allocations(250); many > few+1 {
		t.Errorf("%v allocations for 250 rows, %v for one", many, few)
	}
}

// TestIdleCompressorKeepsNoPage: an idle compressor does not keep the page that it compressed last.
func TestIdleCompressorKeepsNoPage(t *testing.T) {
	for _, by := range []*coding{gzipped, zstandard} {
		compressor, kept := func() (compressor, weak.Pointer[[1 << 10]byte]) {
			page := new([1 << 10]byte)
			parts := func(dst []byte, _, _ int) ([]byte, int) { return append(dst, page[:]...), -1 }
			z := newPartCompressor(by, parts, nil, 0)
			compressor := z.z
			if _, next := z.part(nil, 0, 1<<20); next >= 0 {
				t.Fatal("it goes on")
			}
			return compressor, weak.Make(page)
		}()
		for range 2 {
			runtime.GC()
		}
		if kept.Value() != nil {
			t.Errorf("%s: the page is kept", by.name)
		}
		runtime.KeepAlive(compressor)
	}
}
