package protocoltest_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/protocoltest"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// server returns the handler of newServer.
func server(t *testing.T) http.Handler {
	_, _, h := newServer(t)
	return h
}

// newServer has a feed of 60 rows in 8 data shards, some of them deleted, an outbox feed of two shards with 40 entries
// each, and feeds without entries.
func newServer(t *testing.T) (*sql.DB, *rowfeed.Feed, http.Handler) {
	t.Helper()
	pool := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	db, err := rowfeed.Open(t.Context(), pool, sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec := func(query string, args ...any) {
		if _, err := pool.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(query, err)
		}
	}
	exec(`CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT, b BLOB)`)
	exec(`CREATE TABLE ev (s BIGINT NOT NULL, id INTEGER NOT NULL, v TEXT, PRIMARY KEY (s, id))`)
	exec(`CREATE TABLE log (s BIGINT NOT NULL, id INTEGER NOT NULL, v TEXT, PRIMARY KEY (s, id))`)
	exec(`CREATE TABLE none (id INTEGER PRIMARY KEY)`)
	feed, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []rowfeed.FeedSpec{
		{Name: "ev", Table: "ev", Mode: rowfeed.ModeOutbox, ShardColumn: "s"},
		{Name: "log", Table: "log", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger, ShardColumn: "s"},
		{Name: "none", Table: "none"},
	} {
		if _, err := db.AddFeed(t.Context(), spec, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 60 {
		exec(`INSERT INTO kv VALUES (?, ?, x'00ff')`, i, strings.Repeat("text ", 20))
	}
	for i := range 40 {
		exec(`INSERT INTO log VALUES (-5, ?, 'a'), (7, ?, ?)`, i, i, strings.Repeat("text ", 20))
	}
	publish := func() {
		if _, err := feed.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	publish()
	exec(`DELETE FROM kv WHERE id % 7 = 3`)
	exec(`UPDATE kv SET v = 'x' WHERE id % 7 = 4`)
	publish()
	h := feedhttp.NewHandler(feedhttp.Of(db), nil)
	t.Cleanup(h.Close)
	return pool, feed, h
}

func run(t *testing.T, h http.Handler, feed string) []protocoltest.Result {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	results, err := protocoltest.Run(t.Context(),
		protocoltest.Options{URL: s.URL, Feed: feed, Patience: 50 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestOurServerConforms (O5): no check fails. Few checks are untried on a feed with many entries.
func TestOurServerConforms(t *testing.T) {
	served := server(t)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains([]string{"GET", "HEAD", "PROPFIND"}, r.Method) || r.URL.Query().Has("consistent") {
			t.Errorf("%s %s may write", r.Method, r.URL)
		}
		served.ServeHTTP(w, r)
	})
	for _, feed := range []string{"kv", "log", "ev", "none", ""} {
		untried := 0
		for _, r := range run(t, h, feed) {
			switch {
			case r.Result == protocoltest.Untried:
				untried++
			case r.Result != protocoltest.Passed:
				t.Errorf("%q: %+v", feed, r)
			}
		}
		// 3.8, 4.1, 4.3 and 4.4 do not apply to feeds whose shards have ids.
		if most := map[string]int{"kv": 0, "log": 4}; slices.Contains([]string{"kv", "log"}, feed) &&
			untried > most[feed] {
			t.Errorf("%q: %d checks are untried", feed, untried)
		}
	}
}

func TestChecksHaveTheSentencesOfTheProtocol(t *testing.T) {
	text, err := os.ReadFile("../../../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\*\*(\d+\.\d+)\*\* (.*)$`).FindAllStringSubmatch(string(text), -1) {
		written[m[1]] = m[2]
	}
	for _, r := range run(t, server(t), "none") {
		if written[r.Check] != r.Sentence {
			t.Errorf("%s has the sentence %q, docs/PROTOCOL.md has %q", r.Check, r.Sentence, written[r.Check])
		}
		delete(written, r.Check)
	}
	if len(written) > 0 {
		t.Errorf("no check tests %v", written)
	}
}

// changed returns a server that alters the responses of h.
func changed(h http.Handler, alter func(r *http.Request, w *httptest.ResponseRecorder)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/stream/") {
			h.ServeHTTP(w, r)
			return
		}
		kept := httptest.NewRecorder()
		h.ServeHTTP(kept, r)
		alter(r, kept)
		for name, values := range kept.Header() {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(kept.Code)
		_, _ = w.Write(kept.Body.Bytes())
	})
}

// pages returns a server that alters the JSON pages of h.
func pages(h http.Handler, alter func(r *http.Request, page map[string]any)) http.Handler {
	return changed(h, func(r *http.Request, w *httptest.ResponseRecorder) {
		if !strings.Contains(r.URL.Path, "/fetch/") || w.Code != 200 ||
			w.Header().Get("Content-Type") != "application/json" ||
			w.Header().Get("Content-Encoding") != "" {
			return
		}
		var page map[string]any
		if json.Unmarshal(w.Body.Bytes(), &page) != nil {
			return
		}
		alter(r, page)
		w.Body.Reset()
		_ = json.NewEncoder(w.Body).Encode(page)
	})
}

func headers(h http.Handler, name, value string) http.Handler {
	return changed(h, func(_ *http.Request, w *httptest.ResponseRecorder) {
		if w.Code == 200 {
			w.Header().Set(name, value)
		}
	})
}

// query returns a server that alters requests before h gets them.
func query(h http.Handler, alter func(r *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		alter(r)
		h.ServeHTTP(w, r)
	})
}

func without(name string) func(r *http.Request) {
	return func(r *http.Request) {
		values := r.URL.Query()
		values.Del(name)
		r.URL.RawQuery = values.Encode()
	}
}

const (
	// patience is for servers that never send a response.
	patience = 300 * time.Millisecond
	// hold is long, so that a server that does not wait is caught even if the machine is slow.
	hold = 12 * time.Second
)

// sameIDs gives all events of a stream the same id.
type sameIDs struct{ http.ResponseWriter }

func (i sameIDs) Unwrap() http.ResponseWriter { return i.ResponseWriter }

func (i sameIDs) Write(p []byte) (int, error) {
	_, err := i.ResponseWriter.Write(regexp.MustCompile(`(?m)^id: .*$`).ReplaceAll(p, []byte("id: 1")))
	return len(p), err
}

// TestCheckFailsOnServerThatBreaksItsSentence has servers that break one sentence each.
func TestCheckFailsOnServerThatBreaksItsSentence(t *testing.T) {
	h := server(t)
	for _, broken := range []map[string]brokenServer{
		brokenPages(h), brokenCursors(h), brokenShardsAndWaits(h), brokenStreams(h), brokenProblems(h),
		brokenFormats(h), brokenCaches(h),
	} {
		for name, c := range broken {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := httptest.NewServer(c.server)
				defer s.Close()
				results, err := protocoltest.Run(t.Context(), protocoltest.Options{URL: s.URL, Feed: "kv",
					Only: []string{c.breaks}, Patience: patience, Hold: hold, Tries: 1})
				if err != nil {
					t.Fatal(err)
				}
				var failed []string
				for _, r := range results {
					if r.Result == protocoltest.Failed || r.Result == protocoltest.Differs {
						failed = append(failed, r.Check+": "+r.Detail)
					}
				}
				if !slices.ContainsFunc(failed, func(f string) bool { return strings.HasPrefix(f, c.breaks+":") }) {
					t.Errorf("these checks failed: %q", failed)
				}
			})
		}
	}
}

// brokenServer is a server that breaks the sentence of a check.
type brokenServer struct {
	server http.Handler
	breaks string // the number of the sentence
}

func entries(page map[string]any) []any { return page["entries"].([]any) }

// brokenPages returns servers that break a sentence about listings and pages.
func brokenPages(h http.Handler) map[string]brokenServer {
	return map[string]brokenServer{
		"loses the last entry of a full page": {pages(h, func(r *http.Request, page map[string]any) {
			if n := len(entries(page)); n == 7 {
				page["entries"] = entries(page)[:n-1]
			}
		}), "2.5"},
		"reverses the order": {pages(h, func(_ *http.Request, page map[string]any) {
			slices.Reverse(entries(page))
		}), "2.3"},
		"ignores limit": {query(h, without("limit")), "2.4"},
		"more is false too early": {pages(h, func(_ *http.Request, page map[string]any) {
			page["more"] = false
		}), "2.6"},
		"more is always true": {pages(h, func(_ *http.Request, page map[string]any) {
			if len(entries(page)) == 0 {
				page["more"] = true
			}
		}), "2.6"},
		"null for a cursor": {pages(h, func(_ *http.Request, page map[string]any) {
			page["cursor"] = nil
		}), "2.1"},
		"another content type": {changed(h, func(r *http.Request, w *httptest.ResponseRecorder) {
			if strings.Contains(r.URL.Path, "/fetch/") {
				w.Header().Set("Content-Type", "text/html")
			}
		}), "2.1"},
		"rows in deletes": {pages(h, func(_ *http.Request, page map[string]any) {
			for _, e := range entries(page) {
				e.(map[string]any)["op"] = "delete"
			}
		}), "2.2"},
		"feeds without names": {changed(h, func(r *http.Request, w *httptest.ResponseRecorder) {
			w.Body = bytes.NewBuffer(bytes.ReplaceAll(w.Body.Bytes(), []byte(`"name"`), []byte(`"title"`)))
		}), "1.1"},
		"feeds without a head": {changed(h, func(r *http.Request, w *httptest.ResponseRecorder) {
			w.Body = bytes.NewBuffer(bytes.ReplaceAll(w.Body.Bytes(), []byte(`"head"`), []byte(`"end"`)))
		}), "1.2"},
	}
}

// lastTerm is the head and the term of a cursor.
var lastTerm = regexp.MustCompile(`(~\d+)?\.[0-9a-v]+$`)

// brokenCursors returns servers that break a sentence about cursors.
func brokenCursors(h http.Handler) map[string]brokenServer {
	return map[string]brokenServer{
		"repeats an entry on the next page": {query(h, func(r *http.Request) {
			values := r.URL.Query()
			n, err := strconv.Atoi(lastTerm.ReplaceAllString(values.Get("after"), ""))
			if err == nil && n > 1 && strings.Contains(r.URL.Path, "/fetch/") {
				values.Set("after", fmt.Sprint(n-1))
				r.URL.RawQuery = values.Encode()
			}
		}), "3.2"},
		"a cursor that goes back": {pages(h, func(_ *http.Request, page map[string]any) {
			if len(entries(page)) == 0 {
				page["cursor"] = "5"
			}
		}), "3.2"},
		"now is the beginning": {query(h, func(r *http.Request) {
			if r.URL.Query().Get("after") == "now" {
				without("after")(r)
			}
		}), "3.3"},
		"times are ignored": {query(h, func(r *http.Request) {
			if strings.HasPrefix(r.URL.Query().Get("after"), "at:2") {
				without("after")(r)
			}
		}), "3.4"},
		"0 has no entries": {pages(h, func(r *http.Request, page map[string]any) {
			if r.URL.Query().Get("after") == "0" {
				page["entries"], page["more"] = []any{}, false
			}
		}), "3.1"},
		"a cursor ahead gets an empty page": {changed(h, func(r *http.Request, w *httptest.ResponseRecorder) {
			if w.Code == 409 {
				w.Code = 200
				w.Header().Set("Content-Type", "application/json")
				w.Body = bytes.NewBufferString(`{"feed":"kv","entries":[],"cursor":"","more":false,"base64":[]}`)
			}
		}), "3.5"},
		"terms are ignored": {query(h, func(r *http.Request) {
			if values := r.URL.Query(); values.Has("after") {
				values.Set("after", lastTerm.ReplaceAllString(values.Get("after"), ""))
				r.URL.RawQuery = values.Encode()
			}
		}), "3.8"},
		"heads are ignored": {query(h, func(r *http.Request) {
			r.URL.RawQuery = regexp.MustCompile(`~\d+`).ReplaceAllString(r.URL.RawQuery, "")
		}), "3.8"},
		"generations are ignored": {query(h, func(r *http.Request) {
			values := r.URL.Query()
			_, position, ok := strings.Cut(values.Get("after"), ":")
			if ok && !strings.HasPrefix(values.Get("after"), "at:") {
				values.Set("after", position)
				r.URL.RawQuery = values.Encode()
			}
		}), "3.6"},
		"an invalid cursor means the beginning": {query(h, func(r *http.Request) {
			if r.URL.Query().Get("after") == "x" {
				without("after")(r)
			}
		}), "3.7"},
	}
}

// brokenShardsAndWaits returns servers that break a sentence about shards and waits.
func brokenShardsAndWaits(h http.Handler) map[string]brokenServer {
	return map[string]brokenServer{
		"parts overlap": {query(h, func(r *http.Request) {
			values := r.URL.Query()
			if values.Get("shard_count") == "3" && values.Get("shard") == "1" {
				values.Set("shard", "0")
				r.URL.RawQuery = values.Encode()
			}
		}), "4.1"},
		"a part loses an entry": {pages(h, func(r *http.Request, page map[string]any) {
			if r.URL.Query().Get("shard_count") == "2" && len(entries(page)) > 3 {
				page["entries"] = slices.Delete(entries(page), 1, 2)
			}
		}), "4.1"},
		"shards are ignored": {query(h, without("shard")), "4.2"},
		"accepts any shard": {query(h, func(r *http.Request) {
			values := r.URL.Query()
			if values.Get("shard") == "8" {
				values.Set("shard", "0")
				r.URL.RawQuery = values.Encode()
			}
		}), "4.3"},
		"accepts cursors of other parts": {query(h, func(r *http.Request) {
			values := r.URL.Query()
			if after, part, _ := strings.Cut(values.Get("after"), "_"); part != "" {
				values.Set("after", after)
				r.URL.RawQuery = values.Encode()
			}
		}), "4.4"},
		"does not wait": {query(h, without("wait")), "5.1"},
		"sends 200 before the page": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/fetch/") && r.URL.Query().Has("wait") {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Cache-Control", "no-store")
				w.WriteHeader(200)
				_ = http.NewResponseController(w).Flush()
			}
			h.ServeHTTP(w, r)
		}), "5.1"},
		"waits although there are entries": {query(h, func(r *http.Request) {
			if r.URL.Query().Get("wait") == "1m" {
				<-r.Context().Done()
			}
		}), "5.2"},
	}
}

// brokenStreams returns servers that break a sentence about streams.
func brokenStreams(h http.Handler) map[string]brokenServer {
	return map[string]brokenServer{
		"a stream of JSON": {query(h, func(r *http.Request) {
			r.URL.Path = strings.Replace(r.URL.Path, "/stream/", "/fetch/", 1)
		}), "6.1"},
		"ids that are no cursors": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(sameIDs{w}, r)
		}), "6.2"},
		"Last-Event-ID is ignored": {query(h, func(r *http.Request) { r.Header.Del("Last-Event-ID") }), "6.3"},
	}
}

// brokenProblems returns servers that break a sentence about problems.
func brokenProblems(h http.Handler) map[string]brokenServer {
	return map[string]brokenServer{
		"problems with status 200": {changed(h, func(_ *http.Request, w *httptest.ResponseRecorder) {
			if w.Code >= 400 {
				w.Code = 200
			}
		}), "7.8"},
		"problems as text": {changed(h, func(_ *http.Request, w *httptest.ResponseRecorder) {
			if w.Code >= 400 {
				w.Header().Set("Content-Type", "text/plain")
			}
		}), "7.1"},
		"problems that may be cached": {changed(h, func(_ *http.Request, w *httptest.ResponseRecorder) {
			if w.Code >= 400 {
				w.Header().Set("Cache-Control", "max-age=60")
			}
		}), "7.1"},
		"ignores unknown parameters": {query(h, without("offset")), "7.2"},
		"accepts limit 0": {query(h, func(r *http.Request) {
			if r.URL.Query().Get("limit") == "0" {
				without("limit")(r)
			}
		}), "7.3"},
		"accepts wait without a unit": {query(h, func(r *http.Request) {
			if r.URL.Query().Get("wait") == "30" {
				without("wait")(r)
			}
		}), "7.4"},
		"Accept is ignored": {query(h, func(r *http.Request) { r.Header.Del("Accept") }), "7.5"},
		"accepts any method": {query(h, func(r *http.Request) {
			if r.Method == "PROPFIND" {
				r.Method = "GET"
			}
		}), "7.6"},
		"accepts any path": {query(h, func(r *http.Request) {
			r.URL.Path = strings.TrimSuffix(r.URL.Path, "/more")
		}), "7.7"},
	}
}

// brokenFormats returns servers that break a sentence about formats.
func brokenFormats(h http.Handler) map[string]brokenServer {
	return map[string]brokenServer{
		"no batches": {query(h, func(r *http.Request) { r.Header.Del("Accept") }), "8.3"},
		"batches without a cursor": {changed(h, func(_ *http.Request, w *httptest.ResponseRecorder) {
			w.Header().Del("Rowfeed-Cursor")
		}), "8.3"},
		"no http-feeds": {query(h, func(r *http.Request) {
			r.URL.Path = strings.Replace(r.URL.Path, "/http-feeds/", "/none/of/", 1)
		}), "8.4"},
		"lastEventId is ignored": {query(h, without("lastEventId")), "8.4"},
		"no description": {query(h, func(r *http.Request) {
			r.URL.Path = strings.TrimSuffix(r.URL.Path, "/openapi.json")
		}), "8.5"},
		"NDJSON without the last line": {changed(h, func(_ *http.Request, w *httptest.ResponseRecorder) {
			if w.Header().Get("Content-Type") == "application/x-ndjson" && w.Header().Get("Content-Encoding") == "" {
				lines := strings.SplitAfter(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
				w.Body = bytes.NewBufferString(strings.Join(lines[:len(lines)-1], ""))
			}
		}), "8.1"},
		"no HEAD": {changed(h, func(r *http.Request, w *httptest.ResponseRecorder) {
			if r.Method == "HEAD" {
				w.Code = 404
			}
		}), "8.2"},
	}
}

// brokenCaches returns servers that break a sentence about caching and compression.
func brokenCaches(h http.Handler) map[string]brokenServer {
	return map[string]brokenServer{
		"If-None-Match is ignored":    {query(h, func(r *http.Request) { r.Header.Del("If-None-Match") }), "9.2"},
		"cacheable pages":             {headers(h, "Cache-Control", "public, max-age=31536000, immutable"), "9.1"},
		"the same ETag for all pages": {headers(h, "ETag", `"1"`), "9.3"},
		"Vary lacks Accept":           {headers(h, "Vary", "Origin"), "9.4"},
		"compresses without being asked": {query(h, func(r *http.Request) {
			r.Header.Set("Accept-Encoding", "gzip")
		}), "10.1"},
		"another page, in gzip": {query(h, func(r *http.Request) {
			if r.Header.Get("Accept-Encoding") == "gzip" {
				values := r.URL.Query()
				values.Set("limit", "50")
				r.URL.RawQuery = values.Encode()
			}
		}), "10.2"},
		"another page, in zstd": {query(h, func(r *http.Request) {
			if r.Header.Get("Accept-Encoding") == "zstd" {
				values := r.URL.Query()
				values.Set("limit", "50")
				r.URL.RawQuery = values.Encode()
			}
		}), "10.3"},
	}
}
