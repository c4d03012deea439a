package webhook

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/cmd/sink/sinktest"
)

// TestAddressesInAnyNotationAreChecked: an address in any notation is checked by where it leads.
func TestAddressesInAnyNotationAreChecked(t *testing.T) {
	e, server := newEndpoint(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for _, host := range []string{
		"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.", "LOCALHOST", "localhost.", "[::127.0.0.1]",
		"[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "127.0.0.1%2eexample", "0",
	} {
		s, err := New(Config{URL: "http://" + host + ":" + port + "/"})
		if err != nil {
			continue // invalid, as it should be
		}
		if r := s.Deliver(t.Context(), []sink.Entry{sinktest.Upsert(t, 1, 1, "a")})[0]; r.State == sink.Accepted {
			t.Errorf("%s was delivered to", host)
		}
		s.Close()
	}
	if len(e.requests) > 0 {
		t.Error("a request went through")
	}
}

// TestProxyIsNotUsed: a proxy of the environment is not used, because it would resolve names itself, and its addresses
// could not be checked.
func TestProxyIsNotUsed(t *testing.T) {
	_, server := newEndpoint(t)
	asked := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer proxy.Close()
	s := open(t, Config{URL: server.URL, AllowPrivate: true, Secrets: []string{secret}})
	transport, ok := s.client.Transport.(*http.Transport)
	if !ok || transport.Proxy != nil {
		t.Error("a proxy may be asked")
	}
	t.Setenv("HTTP_PROXY", proxy.URL)
	if r := s.Deliver(t.Context(), []sink.Entry{sinktest.Upsert(t, 1, 1, "a")})[0]; r.State != sink.Accepted || asked {
		t.Errorf("%+v, the proxy was asked: %v", r, asked)
	}
}

// TestAnswersAreReadUpToALimit: only a limited part of an answer and of its header is read, even if it is compressed.
// The endpoint sends for as long as the client reads.
func TestAnswersAreReadUpToALimit(t *testing.T) {
	e, server := newEndpoint(t)
	s := open(t, Config{URL: server.URL, AllowPrivate: true})
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"a body": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for err := error(nil); err == nil; {
				_, err = w.Write(bytes.Repeat([]byte("x"), 64<<10))
			}
		},
		"a bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusInternalServerError)
			z := gzip.NewWriter(w)
			for err := error(nil); err == nil; {
				_, err = z.Write(make([]byte, 1<<20))
			}
		},
		"a header": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 2*maxAnswer))
			w.WriteHeader(http.StatusOK)
		},
	} {
		e.answer = answer
		r := s.Deliver(t.Context(), []sink.Entry{sinktest.Upsert(t, 1, 1, "a")})[0]
		if r.State != sink.Undecided || len(r.Err.Error()) > 1000 {
			t.Errorf("%s: %s %.300v", name, r.State, r.Err)
		}
	}
	// The client does not ask for compression, so nothing is decompressed.
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			w.WriteHeader(http.StatusTeapot)
		}
	}
	if r := s.Deliver(t.Context(), []sink.Entry{sinktest.Upsert(t, 1, 1, "a")})[0]; r.State != sink.Accepted {
		t.Errorf("it asks for compressed answers: %v", r.Err)
	}
}
