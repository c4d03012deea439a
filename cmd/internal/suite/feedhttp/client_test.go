package feedhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
)

// exact also compares types. It treats an empty []byte like a nil one: both are an empty binary value, and neither is
// NULL.
var exact = cmp.Options{cmp.AllowUnexported(rowfeed.Row{}), cmpopts.IgnoreUnexported(rowfeed.Page{}),
	cmp.Comparer(bytes.Equal),
	cmp.Comparer(func(a, b float64) bool { // distinguishes -0 from 0, and treats NaN as equal to NaN
		return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
	})}

// compare fetches the same page from the feed and over HTTP.
func compare(t *testing.T, direct, remote rowfeed.Source, req rowfeed.Request) rowfeed.Page {
	t.Helper()
	want, err := direct.Fetch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Fetch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, exact); diff != "" {
		t.Errorf("%+v (-feed +client):\n%s", req, diff)
	}
	return got
}

func TestClientReadsWhatTheFeedReads(t *testing.T) {
	x := newFixture(t, `CREATE TABLE t (
		a ANY, b BLOB, n NUMERIC, id TEXT NOT NULL, part INTEGER NOT NULL, "odd "" <name>" TEXT,
		PRIMARY KEY (id, part))`)
	values := []any{
		nil, int64(0), int64(math.MaxInt64), int64(math.MinInt64), int64(1<<53 + 1),
		0.0, 1.0, -0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.Copysign(0, -1),
		"", "text", "null", "12.50", "99999999999999999999999999999999.0001", "\x00\x1f\"\\</script>\u2028é😀",
		"2026-01-31 12:00:00", `{"$json":null}`, `{"$binary":"AA=="}`,
		[]byte{}, []byte{0, 0xff}, []byte("text as bytes"),
	}
	for i, v := range values {
		x.exec(t, `INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)`, v, v, v, fmt.Sprint(i), i, "x")
	}
	// Text that is not UTF-8, and binary values of the same bytes.
	x.exec(t, `INSERT INTO t VALUES (CAST(x'ff41' AS TEXT), CAST(x'ff41' AS TEXT), NULL, CAST(x'c328' AS TEXT), -1, `+
		`NULL), (x'ff41', x'ff41', NULL, x'c328', -1, NULL)`)
	f := x.addFeed(t, "t")
	x.exec(t, `DELETE FROM t WHERE part % 5 = 0`)
	x.publish(t, f)

	c := x.client("t")
	for _, limit := range []int{0, 1, 2, 25, feedtype.MaxLimit} {
		req := rowfeed.Request{Limit: limit}
		for range 100 {
			page := compare(t, f, c, req)
			if !page.More {
				break
			}
			req.After = page.Cursor
		}
	}
	for _, after := range []rowfeed.Cursor{"0", "1", "3@27", rowfeed.Now, "at:2020-01-01T00:00:00+02:00",
		rowfeed.At(time.Now().Add(time.Hour))} {
		compare(t, f, c, rowfeed.Request{After: after, Wait: time.Second})
	}
	want, err := f.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("info (-feed +client):\n%s", diff)
	}
}

func TestClientFollowsColumnChanges(t *testing.T) {
	x := newFixture(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`, `INSERT INTO kv VALUES (1, 'AA==')`)
	f := x.addFeed(t, "kv")
	c := x.client("kv")
	for _, change := range []string{
		`SELECT 1`,
		`ALTER TABLE kv ADD COLUMN w REAL DEFAULT 2.5`,
		`ALTER TABLE kv RENAME COLUMN w TO u`,
		`ALTER TABLE kv DROP COLUMN u`,
		`ALTER TABLE kv DROP COLUMN v`,
		`ALTER TABLE kv ADD COLUMN v BLOB DEFAULT x'00'`, // the same names and JSON, but another kind
	} {
		x.exec(t, change)
		compare(t, f, c, rowfeed.Request{})
		compare(t, f, c, rowfeed.Request{After: rowfeed.Now})
	}
}

func TestClientErrorsHaveTheFeedsCodes(t *testing.T) {
	x := kvFixture(t)
	f, err := x.db.Feed(t.Context(), "kv")
	if err != nil {
		t.Fatal(err)
	}
	x.exec(t, `UPDATE rowfeed_feeds SET tombstones_below = 3`)
	for _, req := range []rowfeed.Request{
		{After: "9"}, {After: "3:1"}, {After: "1"}, {After: "junk"}, {After: "at:junk"}, {Limit: -1},
		{Limit: feedtype.MaxLimit + 1},
		{Limit: 1, Wait: -1},
	} {
		_, want := f.Fetch(t.Context(), req)
		_, got := x.client("kv").Fetch(t.Context(), req)
		var w, g *rowfeed.Error
		if !errors.As(want, &w) || !errors.As(got, &g) {
			t.Errorf("%+v: %v, through HTTP %v", req, want, got)
			continue
		}
		if !errors.Is(got, w.Code) || g.Param != w.Param || g.Next != w.Next && req.Limit == 0 ||
			g.Cause != w.Cause && w.Code != rowfeed.InvalidRequest {
			t.Errorf("%+v: %+v, through HTTP %+v", req, w, g)
		}
	}
	nope := x.client("nope")
	nope.URL += "/?token=secret"
	_, err = nope.Fetch(t.Context(), rowfeed.Request{})
	if !errors.Is(err, rowfeed.UnknownFeed) || !strings.Contains(err.Error(), `feed "nope" at http://127.0.0.1`) ||
		strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	if _, err = x.client("nope").Info(t.Context()); !errors.Is(err, rowfeed.UnknownFeed) {
		t.Error(err)
	}
}

func TestClientRefusesInvalidAnswers(t *testing.T) {
	respond := func(status int, contentType, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		code   rowfeed.Code
		text   string
		retry  time.Duration
	}{
		{"HTML", respond(200, "text/html; charset=utf-8", "<p>hello"), rowfeed.Failed,
			"not from rowfeed: status 200 with text/html", 0},
		{"other JSON", respond(200, "application/json", `{"entries":[]}`), rowfeed.Failed, "not a page of a feed", 0},
		{"no JSON", respond(200, "application/json", `<p>`), rowfeed.Failed, "not a page of a feed", 0},
		{"a list", respond(200, "application/json", `[]`), rowfeed.Failed, "not a page of a feed", 0},
		{"plain 404", respond(404, "text/plain", "404 page not found"), rowfeed.Failed, "status 404 with text/plain",
			0},
		{"no type", respond(404, "", ""), rowfeed.Failed, "status 404 with no content type", 0},
		{"foreign problem", respond(404, "application/problem+json", `{"type":"about:blank","title":"x"}`),
			rowfeed.Failed, "status 404", 0},
		{"proxy", respond(502, "text/html", "bad gateway"), rowfeed.Unavailable, "status 502", 0},
		{"proxy with Retry-After", respond(503, "text/html", "x", "Retry-After", "7"), rowfeed.Unavailable,
			"status 503", 7 * time.Second},
		{"busy", respond(503, "application/problem+json", `{"type":"urn:rowfeed:problem:locked","detail":"busy"}`,
			"Retry-After", "2"), rowfeed.Locked, "busy", 2 * time.Second},
		{"code of a later version", respond(418, "application/problem+json",
			`{"type":"urn:rowfeed:problem:teapot","detail":"short and stout"}`), "teapot", "stout", 0},
		{"too much", respond(200, "application/json", strings.Repeat(" ", 5000)), rowfeed.Failed,
			"more than 4096 bytes", 0},
		{"breaks off", respond(200, "application/json", `{"entries":`, "Content-Length", "100"), rowfeed.Unavailable,
			"closed the connection early", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.answer)
			_, err := (&feedhttp.Client{URL: s.URL, Feed: "kv", MaxBytes: 4096}).Fetch(t.Context(), rowfeed.Request{})
			if !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.text) {
				t.Fatal(err)
			}
			var status *feedhttp.StatusError
			if errors.As(err, &status) && status.RetryAfter != c.retry || c.retry > 0 && status == nil {
				t.Errorf("%+v", status)
			}
		})
	}
}

func TestClientStopsIfColumnsKeepChanging(t *testing.T) {
	x := newFixture(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY)`)
	x.addFeed(t, "kv")
	n := 0
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; strings.Contains(r.URL.Path, "fetch") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"entries":[{"position":"1","op":"upsert","key":{"id":1},"row":{"other":1}}],` +
				`"cursor":"1","more":false}`))
			return
		}
		feedhttp.NewHandler(feedhttp.Of(x.db), nil).ServeHTTP(w, r)
	}))
	_, err := (&feedhttp.Client{URL: s.URL, Feed: "kv"}).Fetch(t.Context(), rowfeed.Request{})
	if !errors.Is(err, rowfeed.Failed) || !strings.Contains(err.Error(), "columns change too fast") || n != 10 {
		t.Errorf("after %d requests: %v", n, err)
	}
}

func TestClientReportsUnreachableServer(t *testing.T) {
	s := serve(t, http.NotFoundHandler())
	s.Close()
	c := &feedhttp.Client{URL: strings.Replace(s.URL, "://", "://me:secret@", 1), Feed: "kv"}
	_, err := c.Fetch(t.Context(), rowfeed.Request{})
	if !errors.Is(err, rowfeed.Unavailable) || !strings.Contains(err.Error(), "rowfeed serve") ||
		strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	hang := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	_, err = (&feedhttp.Client{URL: hang.URL, Feed: "kv", Timeout: time.Millisecond}).Fetch(t.Context(),
		rowfeed.Request{})
	if !errors.Is(err, rowfeed.Unavailable) || !strings.Contains(err.Error(), "in time") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = (&feedhttp.Client{URL: hang.URL, Feed: "kv"}).Fetch(ctx, rowfeed.Request{}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}

func TestClientValidatesURL(t *testing.T) {
	x := kvFixture(t)
	below := http.NewServeMux()
	below.Handle("/deep/er/", http.StripPrefix("/deep/er", feedhttp.NewHandler(feedhttp.Of(x.db), nil)))
	s := serve(t, below)
	for _, suffix := range []string{"/deep/er", "/deep/er/", "/deep/er?x=1#y"} {
		if _, err := (&feedhttp.Client{URL: s.URL + suffix, Feed: "kv"}).Fetch(t.Context(),
			rowfeed.Request{After: "1"}); err != nil {
			t.Errorf("%s: %v", suffix, err)
		}
	}
	for _, bad := range []string{"", "localhost:8080", "ftp://host", "http://", "/path", "http://me:secret@[::1",
		"me:secret@host:1",
		"://me:secret@x"} {
		_, err := (&feedhttp.Client{URL: bad, Feed: "kv"}).Fetch(t.Context(), rowfeed.Request{})
		if !errors.Is(err, rowfeed.InvalidRequest) || !strings.Contains(err.Error(), "http://127.0.0.1:8080") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := (&feedhttp.Client{URL: s.URL}).Info(t.Context()); !errors.Is(err, rowfeed.InvalidRequest) {
		t.Error(err)
	}
}

// TestLargePageArrivesWhole: a client gets all of a page that is larger than all buffers between it and the server.
func TestLargePageArrivesWhole(t *testing.T) {
	x := newFixture(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY, b BLOB)`)
	x.exec(t, `INSERT INTO kv VALUES (2, ?)`, bytes.Repeat([]byte{0xfe, 0, 7}, 2<<20))
	x.exec(t, `INSERT INTO kv VALUES (1, NULL)`)
	f := x.addFeed(t, "kv")
	compare(t, f, x.client("kv"), rowfeed.Request{})
}
