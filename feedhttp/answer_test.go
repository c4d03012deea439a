package feedhttp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBrokenOff: an answer that cannot be ended after its beginning was sent breaks off, over
// HTTP/1.1 and HTTP/2, for who asked for its length and who did not; it does not end like one
// that is whole.
func TestBrokenOff(t *testing.T) {
	var log bytes.Buffer
	h := NewHandler(nil, &Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	fails := func(dst []byte, i, size int) ([]byte, int) {
		if i == 3 {
			panic("no such value")
		}
		return append(dst, strings.Repeat("x", size)...), i + 1
	}
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer h.recoverPanic(w, r)
			h.writeParts(w, r, jsonMediaType, fails)
		}))
		s.EnableHTTP2 = http2
		if http2 {
			s.StartTLS()
		} else {
			s.Start()
		}
		resp, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.Proto != name || resp.StatusCode != http.StatusOK || resp.ContentLength != -1 || err == nil || len(body) > 3*writeChunk ||
			strings.Trim(string(body), "x") != "" {
			t.Errorf("%s (%s): %s, %d of %d bytes, %v", name, resp.Proto, resp.Status, len(body), resp.ContentLength, err)
		}
		s.Close()
	}
	if !strings.Contains(log.String(), "no such value") {
		t.Errorf("the log says %q", log.String())
	}
}

// TestAnswerAllocations: a page costs as many allocations to serve whatever its entries; what
// it is made in was used before.
func TestAnswerAllocations(t *testing.T) {
	h := NewHandler(nil, nil)
	r := httptest.NewRequestWithContext(context.Background(), "GET", "/", nil)
	allocations := func(entries int) float64 {
		row := bytes.Repeat([]byte("x"), 200)
		return testing.AllocsPerRun(100, func() {
			h.writeParts(httptest.NewRecorder(), r, jsonMediaType, func(dst []byte, i, _ int) ([]byte, int) {
				for ; i < entries; i++ {
					dst = append(dst, row...)
				}
				return dst, -1
			})
		})
	}
	// The recorder's own buffer is what grows.
	if few, many := allocations(1), allocations(250); many > few+1 {
		t.Errorf("%v allocations for 250 rows, %v for one", many, few)
	}
}
