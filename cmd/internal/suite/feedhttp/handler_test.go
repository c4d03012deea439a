package feedhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/terms"
)

// kvFixture has the feed kv with two rows, of which the second was then deleted, and a third row with a binary value.
func kvFixture(t *testing.T) fixture {
	t.Helper()
	x := newFixture(t,
		`CREATE TABLE kv (id INTEGER PRIMARY KEY, ns TEXT NOT NULL, k TEXT NOT NULL, v TEXT, b BLOB)`,
		`INSERT INTO kv VALUES (1, '', 'fred', 'jim', NULL), (2, '', '<b>&', NULL, NULL)`)
	f := x.addFeed(t, "kv")
	x.exec(t, `DELETE FROM kv WHERE id = 2`)
	x.exec(t, `INSERT INTO kv VALUES (3, 'n"s', '<i>', 'line
break', x'00ff')`)
	x.publish(t, f)
	return x
}

type answer struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, s *httptest.Server, method, path string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

const (
	entry1 = `{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"ns":"","k":"fred","v":"jim",` +
		`"b":null}}`
	entry3 = `{"position":"3","shard":0,"op":"delete","key":{"id":2}}`
	entry4 = `{"position":"4","shard":0,"op":"upsert","key":{"id":3},"row":{"id":3,"ns":"n\"s","k":"<i>",` +
		`"v":"line\nbreak","b":"AP8="}}`
)

// TestListIsServedBehindAServeMux: the list is at /_feeds, and at /_feeds/, to which a ServeMux with only the pattern
// "/_feeds/" redirects.
func TestListIsServedBehindAServeMux(t *testing.T) {
	x := kvFixture(t)
	mux := http.NewServeMux()
	mux.Handle("/_feeds/", feedhttp.NewHandler(feedhttp.Of(x.db), nil))
	s := serve(t, mux)
	for _, path := range []string{"/_feeds", "/_feeds/"} {
		if a := ask(t, s, "GET", path); a.status != 200 || !strings.HasPrefix(a.body, `{"feeds":[{"name":"kv"`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestPagesHaveDocumentedForm(t *testing.T) {
	x := kvFixture(t)
	page := func(cursor, more string, entries ...string) string {
		return `{"feed":"kv","entries":[` + strings.Join(entries, ",") + `],"cursor":"` + cursor +
			`.9k3f2c7adq","more":` + more + `,"base64":["b"]}` + "\n"
	}
	for _, c := range []struct{ name, query, accept, want string }{
		{"JSON from a cursor", "?after=2", "", page("4", "false", entry3, entry4)},
		{"one entry", "?after=0&limit=1", "*/*", page("1@4", "true", entry1)},
		{"beginning shows no old tombstone", "", "application/json", page("4", "false", entry1, entry4)},
		{"empty page", "?after=4", "", page("4", "false")},
		{"now", "?after=now", "", page("4", "false")},
		{"at a time with a plus", "?after=at:2999-01-01T00:00:00+01:00", "", page("4", "false")},
		{"at a time long ago", "?after=at:1999-01-01T00:00:00Z&limit=1", "", page("1~4", "true", entry1)},
		{"what is there is not waited for", "?after=2&limit=1&wait=1m", "", page("3~4", "true", entry3)},
		{"wait that ends", "?after=4&wait=1ms", "", page("4", "false")},
		{"NDJSON", "?after=2", "application/x-ndjson",
			entry3 + "\n" + entry4 + "\n" + `{"cursor":"4.9k3f2c7adq","more":false,"base64":["b"]}` + "\n"},
		{"NDJSON, empty", "?after=4", "application/x-ndjson",
			`{"cursor":"4.9k3f2c7adq","more":false,"base64":["b"]}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := []string{}
			if c.accept != "" {
				header = []string{"Accept", c.accept}
			}
			got := ask(t, x.server, "GET", "/_feeds/fetch/kv"+c.query, header...)
			if diff := cmp.Diff(c.want, terms.Fix(got.body)); got.status != 200 || diff != "" {
				t.Errorf("status %d (-want +got):\n%s", got.status, diff)
			}
			want := "application/json"
			if strings.Contains(c.accept, "ndjson") {
				want = "application/x-ndjson"
			}
			if h := got.header; h.Get("Content-Type") != want || h.Get("Cache-Control") != "private, no-cache" ||
				h.Get("Content-Length") != fmt.Sprint(len(got.body)) ||
				h.Get("Vary") != "Accept, Accept-Encoding, Authorization, Cookie" {
				t.Errorf("header %v", h)
			}
			head := ask(t, x.server, "HEAD", "/_feeds/fetch/kv"+c.query, header...)
			if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(len(got.body)) {
				t.Errorf("HEAD: %d %q %v", head.status, head.body, head.header)
			}
		})
	}
}

func TestFeedWithoutEntriesHasAnEmptyPage(t *testing.T) {
	x := newFixture(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY)`)
	x.addFeed(t, "kv")
	got := ask(t, x.server, "GET", "/_feeds/fetch/kv")
	if want := `{"feed":"kv","entries":[],"cursor":"","more":false,"base64":[]}` + "\n"; got.body != want {
		t.Errorf("got %s", got.body)
	}
}

func TestListAndInfoHaveDocumentedJSON(t *testing.T) {
	x := newFixture(t)
	if got := ask(t, x.server, "GET", "/_feeds"); got.body != `{"feeds":[]}`+"\n" {
		t.Errorf("without feeds: %s", got.body)
	}
	x.exec(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT, b BLOB)`)
	x.exec(t, `CREATE TABLE "fetch" (id INTEGER PRIMARY KEY)`)
	x.exec(t, `INSERT INTO kv VALUES (1, 'x', NULL)`)
	x.addFeed(t, "kv")
	x.addFeed(t, "fetch")
	const kv = `{"name":"kv","mode":"sequence","state":"active","generation":1,"head":"1.9k3f2c7adq",` +
		`"key":[{"name":"id","type":"INTEGER","kind":"dynamic"}],` +
		`"columns":[{"name":"id","type":"INTEGER","kind":"dynamic"},{"name":"v","type":"TEXT","kind":"dynamic"},` +
		`{"name":"b","type":"BLOB","kind":"binary"}],` +
		`"base64":["b"],"data_shards":1}`
	const fetch = `{"name":"fetch","mode":"sequence","state":"active","generation":1,"head":"",` +
		`"key":[{"name":"id","type":"INTEGER","kind":"dynamic"}],` +
		`"columns":[{"name":"id","type":"INTEGER","kind":"dynamic"}],"base64":[],"data_shards":1}`
	for path, want := range map[string]string{
		"/_feeds":       `{"feeds":[` + fetch + "," + kv + `]}` + "\n",
		"/_feeds/kv":    kv + "\n",
		"/_feeds/fetch": fetch + "\n",
		"/_feeds/fetch/kv": `{"feed":"kv","entries":[{"position":"1","shard":0,"op":"upsert","key":{"id":1},` +
			`"row":{"id":1,"v":"x","b":null}}],"cursor":"1.9k3f2c7adq","more":false,"base64":["b"]}` + "\n",
	} {
		got := ask(t, x.server, "GET", path)
		if diff := cmp.Diff(want, terms.Fix(got.body)); got.status != 200 || diff != "" {
			t.Errorf("%s: %d (-want +got):\n%s", path, got.status, diff)
		}
	}

	// A broken feed must not hide the others.
	x.exec(t, `DROP TABLE "fetch"`)
	got := ask(t, x.server, "GET", "/_feeds")
	if got.status != 200 || !strings.Contains(terms.Fix(got.body), kv) ||
		!strings.Contains(got.body, `{"name":"fetch","problem":{"type":"urn:rowfeed:problem:refused"`) {
		t.Errorf("with a broken feed: %d %s", got.status, got.body)
	}
}

// badRequests are requests to kvFixture, and their problems.
var badRequests = []struct {
	name, method, path, accept string
	want                       feedhttp.Problem // Detail and Next are parts of the texts
}{
	{"limit is no number", "GET", "/_feeds/fetch/kv?limit=ten", "",
		invalidParameter("limit", `"ten" is not a whole number`)},
	{"limit is empty", "GET", "/_feeds/fetch/kv?limit=", "", invalidParameter("limit", "between 1 and 10000")},
	{"limit 0", "GET", "/_feeds/fetch/kv?limit=0", "", invalidParameter("limit", "between 1 and 10000")},
	{"limit too high", "GET", "/_feeds/fetch/kv?limit=10001", "", invalidParameter("limit", "between 1 and 10000")},
	{"limit negative", "GET", "/_feeds/fetch/kv?limit=-1", "", invalidParameter("limit", "between 1 and 10000")},
	{"limit with a sign", "GET", "/_feeds/fetch/kv?limit=%2B5", "", invalidParameter("limit", "not a whole number")},
	{"limit beyond int64", "GET", "/_feeds/fetch/kv?limit=18446744073709551617", "",
		invalidParameter("limit", "not a whole number")},
	{"limit repeated", "GET", "/_feeds/fetch/kv?limit=1&limit=1", "", invalidParameter("limit", "sent 2 times")},
	{"wait without unit", "GET", "/_feeds/fetch/kv?wait=30", "", invalidParameter("wait", "not a duration")},
	{"wait negative", "GET", "/_feeds/fetch/kv?wait=-1s", "", invalidParameter("wait", "between 0s and 1m0s")},
	{"wait too long", "GET", "/_feeds/fetch/kv?wait=61s", "", invalidParameter("wait", "between 0s and 1m0s")},
	{"after is junk", "GET", "/_feeds/fetch/kv?after=x", "", invalidParameter("after", `"x" is not a cursor`)},
	{"after is negative", "GET", "/_feeds/fetch/kv?after=-1", "", invalidParameter("after", "not a cursor")},
	{"after at no time", "GET", "/_feeds/fetch/kv?after=at:noon", "",
		invalidParameter("after", "not an RFC 3339 time")},
	{"after repeated", "GET", "/_feeds/fetch/kv?after=1&after=2", "", invalidParameter("after", "sent 2 times")},
	{"unknown parameter", "GET", "/_feeds/fetch/kv?offset=1", "", invalidParameter("offset", "no such parameter")},
	{"shard that the feed has not", "GET", "/_feeds/fetch/kv?shard=1", "",
		invalidParameter("shard", "1 is not a data shard of the feed: they are numbered 0 to 0")},
	{"shard negative", "GET", "/_feeds/fetch/kv?shard=-1", "",
		invalidParameter("shard", "not a data shard of the feed")},
	{"shard with a sign", "GET", "/_feeds/fetch/kv?shard=%2B5", "", invalidParameter("shard", "not a whole number")},
	{"shard too high", "GET", "/_feeds/fetch/kv?shard=65536", "",
		invalidParameter("shard", "not a data shard of the feed")},
	{"shard beyond int64", "GET", "/_feeds/fetch/kv?shard=18446744073709551616", "",
		invalidParameter("shard", "not a whole number")},
	{"shard empty", "GET", "/_feeds/fetch/kv?shard=", "", invalidParameter("shard", `"" is not a whole number`)},
	{"shard repeated", "GET", "/_feeds/fetch/kv?shard=0&shard=0", "", invalidParameter("shard", "sent 2 times")},
	{"shard beyond the count", "GET", "/_feeds/fetch/kv?shard=4&shard_count=4", "",
		invalidParameter("shard", "4 is not one of the 4 shards, which are numbered 0 to 3")},
	{"no shard", "GET", "/_feeds/fetch/kv?shard_count=4", "",
		invalidParameter("shard_count", "needs the parameter shard")},
	{"shard_count 0", "GET", "/_feeds/fetch/kv?shard=0&shard_count=0", "",
		invalidParameter("shard_count", "between 1 and 65536")},
	{"shard_count too high", "GET", "/_feeds/fetch/kv?shard=0&shard_count=65537", "",
		invalidParameter("shard_count", "between 1 and 65536")},
	{"shard_count empty", "GET", "/_feeds/fetch/kv?shard=0&shard_count=", "",
		invalidParameter("shard_count", "not a whole number")},
	{"shard_count repeated", "GET", "/_feeds/fetch/kv?shard=0&shard_count=1&shard_count=2", "",
		invalidParameter("shard_count", "sent 2 times")},
	{"bad shard and wait", "GET", "/_feeds/fetch/kv?after=4&shard=2&shard_count=2&wait=1m", "",
		invalidParameter("shard", "2 is not one of the 2")},
	{"bad shard of a stream", "GET", "/_feeds/stream/kv?shard=3", "",
		invalidParameter("shard", "3 is not a data shard")},
	{"stream without a shard", "GET", "/_feeds/stream/kv?shard_count=3", "",
		invalidParameter("shard_count", "needs the parameter shard")},
	{"consistent is neither", "GET", "/_feeds/fetch/kv?consistent=1", "",
		invalidParameter("consistent", `"1" is neither true nor false`)},
	{"consistent is empty", "GET", "/_feeds/fetch/kv?consistent=", "", invalidParameter("consistent", "neither")},
	{"stream of an unknown feed", "GET", "/_feeds/stream/nope", "",
		feedhttp.Problem{Type: "unknown-feed", Status: 404, Feed: "nope", Detail: "no such feed"}},
	{"list parameter", "GET", "/_feeds/fetch/kv?after[]=1", "", invalidParameter("after[]", "no such parameter")},
	{"stream with a limit", "GET", "/_feeds/stream/kv?limit=1", "", invalidParameter("limit", "no such parameter")},
	{"stream after junk", "GET", "/_feeds/stream/kv?after=x", "", invalidParameter("after", `"x" is not a cursor`)},
	{"stream ahead", "GET", "/_feeds/stream/kv?after=5", "",
		feedhttp.Problem{Type: "cursor-ahead", Status: 409, Feed: "kv", Detail: "ahead of the feed's head 4"}},
	{"stream as JSON", "GET", "/_feeds/stream/kv", "application/json",
		feedhttp.Problem{Type: "not-acceptable", Status: 406, Feed: "kv", Next: "text/event-stream"}},
	{"post to a stream", "POST", "/_feeds/stream/kv", "",
		feedhttp.Problem{Type: "method-not-allowed", Status: 405, Feed: "kv", Detail: "POST"}},
	{"parameter on the list", "GET", "/_feeds?limit=1", "", invalidParameter("limit", "no such parameter")},
	{"parameter on a feed", "GET", "/_feeds/kv?x=", "", invalidParameter("x", "no such parameter")},
	{"malformed query", "GET", "/_feeds/fetch/kv?after=%zz", "",
		feedhttp.Problem{Type: "invalid-request", Status: 400, Feed: "kv", Detail: "malformed"}},
	{"huge query", "GET", "/_feeds/fetch/kv?after=" + strings.Repeat("1", 3000), "",
		feedhttp.Problem{Type: "uri-too-long", Status: 414, Feed: "kv", Detail: "at most 2048"}},
	{"unknown feed", "GET", "/_feeds/fetch/nope", "",
		feedhttp.Problem{Type: "unknown-feed", Status: 404, Feed: "nope", Detail: `feed "nope": there is no such feed`,
			Next: "feed"}},
	{"unknown feed's info", "GET", "/_feeds/nope", "",
		feedhttp.Problem{Type: "unknown-feed", Status: 404, Feed: "nope", Detail: "no such feed", Next: "feed"}},
	{"no name of a feed", "GET", "/_feeds/No%20Pe", "",
		feedhttp.Problem{Type: "unknown-feed", Status: 404, Feed: "No Pe", Detail: "no such feed",
			Next: "GET /_feeds"}},
	{"how far parts are", "GET", "/_feeds/shards/kv", "",
		feedhttp.Problem{Type: "invalid-request", Status: 400, Feed: "kv",
			Detail: "its shards are not feeds of their own",
			Next:   "read the whole feed"}},
	{"cursor ahead", "GET", "/_feeds/fetch/kv?after=5", "",
		feedhttp.Problem{Type: "cursor-ahead", Status: 409, Feed: "kv",
			Detail: `cursor "5" is ahead of the feed's head 4`, Next: "start again"}},
	{"other term", "GET", "/_feeds/fetch/kv?after=4.7k3f2c7adq", "",
		feedhttp.Problem{Type: "history-lost", Status: 409, Feed: "kv",
			Detail: `cursor "4.7k3f2c7adq" has read up to head 4 in term 7k3f2c7adq`, Next: "start again"}},
	{"other term of a stream", "GET", "/_feeds/stream/kv?after=2~4.7k3f2c7adq", "",
		feedhttp.Problem{Type: "history-lost", Status: 409, Feed: "kv", Detail: "head 4 in term 7k3f2c7adq"}},
	{"term that is none", "GET", "/_feeds/fetch/kv?after=4.x", "",
		invalidParameter("after", "not a number of 48 bits")},
	{"other generation", "GET", "/_feeds/fetch/kv?after=7:1", "",
		feedhttp.Problem{Type: "generation-changed", Status: 409, Feed: "kv", Detail: "generation 7",
			Next: "start again"}},
	{"post", "POST", "/_feeds", "", feedhttp.Problem{Type: "method-not-allowed", Status: 405, Detail: "POST"}},
	{"delete", "DELETE", "/_feeds/kv", "",
		feedhttp.Problem{Type: "method-not-allowed", Status: 405, Feed: "kv", Detail: "DELETE"}},
	{"no such path", "GET", "/_feeds/fetch/kv/more", "",
		feedhttp.Problem{Type: "not-found", Status: 404, Detail: "nothing at", Next: "GET /_feeds"}},
	{"slash behind a feed", "GET", "/_feeds/kv/", "",
		feedhttp.Problem{Type: "not-found", Status: 404, Detail: "nothing at", Next: "GET /_feeds"}},
	{"no feed to fetch", "GET", "/_feeds/fetch/", "",
		feedhttp.Problem{Type: "not-found", Status: 404, Detail: "nothing at", Next: "GET /_feeds"}},
	{"only the start is alike", "GET", "/_feedsx", "",
		feedhttp.Problem{Type: "not-found", Status: 404, Detail: "nothing at"}},
	{"post to no path", "POST", "/_feeds/a/b", "",
		feedhttp.Problem{Type: "not-found", Status: 404, Detail: "nothing at"}},
	{"page as HTML", "GET", "/_feeds/fetch/kv", "text/html",
		feedhttp.Problem{Type: "not-acceptable", Status: 406, Feed: "kv", Detail: "text/html",
			Next: "application/x-ndjson"}},
	{"list as lines", "GET", "/_feeds", "application/x-ndjson",
		feedhttp.Problem{Type: "not-acceptable", Status: 406, Detail: "ndjson", Next: "application/json"}},
	{"nothing wanted", "GET", "/_feeds/kv", "*/*;q=0",
		feedhttp.Problem{Type: "not-acceptable", Status: 406, Feed: "kv", Detail: "none of"}},
	{"description as YAML", "GET", "/_feeds/openapi.json", "application/yaml",
		feedhttp.Problem{Type: "not-acceptable", Status: 406}},
	{"parameter on the description", "GET", "/_feeds/openapi.json?v=1", "", invalidParameter("v", "no such parameter")},
	{"post to the description", "POST", "/_feeds/openapi.json", "",
		feedhttp.Problem{Type: "method-not-allowed", Status: 405}},
	{"post to a page", "POST", "/_feeds/fetch/kv", "",
		feedhttp.Problem{Type: "method-not-allowed", Status: 405, Feed: "kv"}},
	{"how far parts are, as text", "GET", "/_feeds/shards/kv", "text/plain",
		feedhttp.Problem{Type: "not-acceptable", Status: 406, Feed: "kv"}},
	{"post to shards", "POST", "/_feeds/shards/kv", "",
		feedhttp.Problem{Type: "method-not-allowed", Status: 405, Feed: "kv"}},
	{"http-feeds with another's parameter", "GET", "/_feeds/http-feeds/kv?after=1", "",
		invalidParameter("after", "no such parameter")},
	{"http-feeds as JSON", "GET", "/_feeds/http-feeds/kv", "application/json",
		feedhttp.Problem{Type: "not-acceptable", Status: 406, Feed: "kv", Next: "application/cloudevents-batch+json"}},
	{"post to http-feeds", "POST", "/_feeds/http-feeds/kv", "",
		feedhttp.Problem{Type: "method-not-allowed", Status: 405, Feed: "kv"}},
}

// TestInvalidRequestsGetProblems (M20): a request that is refused is answered with a problem document.
func TestInvalidRequestsGetProblems(t *testing.T) {
	x := kvFixture(t)
	for _, c := range badRequests {
		t.Run(c.name, func(t *testing.T) {
			var header []string
			if c.accept != "" {
				header = []string{"Accept", c.accept}
			}
			checkProblem(t, ask(t, x.server, c.method, c.path, header...), c.want)
		})
	}
}

func invalidParameter(name, detail string) feedhttp.Problem {
	return feedhttp.Problem{Type: "invalid-request", Status: 400, Parameter: name, Detail: detail}
}

func checkProblem(t *testing.T, a answer, want feedhttp.Problem) {
	t.Helper()
	var p feedhttp.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	if a.status != want.Status || p.Status != want.Status || p.Type != "urn:rowfeed:problem:"+want.Type ||
		p.Title == "" ||
		p.Parameter != want.Parameter || want.Feed != "" && p.Feed != want.Feed ||
		!strings.Contains(p.Detail, want.Detail) || !strings.Contains(p.Next, want.Next) {
		t.Errorf("status %d, %+v", a.status, p)
	}
	if h := a.header; h.Get("Content-Type") != "application/problem+json" || h.Get("Cache-Control") != "no-store" ||
		h.Get("ETag") != "" || !strings.HasSuffix(h.Get("Vary"), ", Authorization, Cookie") {
		t.Errorf("header %v", h)
	}
	if want.Status == 405 && a.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow: %q", a.header.Get("Allow"))
	}
}

func TestExpiredTombstonesAreAProblem(t *testing.T) {
	x := kvFixture(t)
	x.exec(t, `UPDATE rowfeed_feeds SET tombstones_below = 3`)
	checkProblem(t, ask(t, x.server, "GET", "/_feeds/fetch/kv?after=1"),
		feedhttp.Problem{Type: "tombstones-expired", Status: 410, Feed: "kv", Detail: "older than the tombstones",
			Next: "start again"})
}

func TestMissingTablesAreAProblem(t *testing.T) {
	x := newFixture(t)
	if err := x.db.MigrateDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/_feeds", "/_feeds/kv", "/_feeds/fetch/kv"} {
		got := ask(t, x.server, "GET", path)
		checkProblem(t, got, feedhttp.Problem{Type: "not-initialized", Status: 503, Detail: "rowfeed_feeds",
			Next: "rowfeed init"})
		if got.header.Get("Retry-After") != "10" {
			t.Errorf("header %v", got.header)
		}
	}
}

// TestEveryCodeHasAStatus: each code of the library has a status, and no answer has text of a database driver.
func TestEveryCodeHasAStatus(t *testing.T) {
	for code, want := range map[rowfeed.Code]int{
		rowfeed.InvalidRequest: 400, rowfeed.UnknownFeed: 404, rowfeed.CursorAhead: 409, rowfeed.HistoryLost: 409,
		rowfeed.GenerationChanged: 409, rowfeed.Conflict: 409, rowfeed.TombstonesExpired: 410,
		rowfeed.NotConsistent: 503, rowfeed.Sharding: 503, rowfeed.Filling: 503, rowfeed.NotInitialized: 503,
		rowfeed.SchemaVersion: 503,
		rowfeed.Unavailable:   503, rowfeed.Locked: 503, rowfeed.Refused: 500, rowfeed.UnsafeDurability: 500,
		rowfeed.Failed:       500,
		"of-a-later-version": 500,
	} {
		err := fmt.Errorf("wrapped: %w",
			&rowfeed.Error{Code: code, Object: "feed", Cause: "read a page", Next: "do this",
				Err: errors.New("dial postgres://me:secret@db")})
		var log strings.Builder
		s := serve(t, feedhttp.NewHandler(stubCatalog{failing(err)},
			&feedhttp.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}))
		got := ask(t, s, "GET", "/_feeds/fetch/kv")
		checkProblem(t, got, feedhttp.Problem{Type: string(code), Status: want, Detail: "feed: read a page",
			Next: "do this"})
		if strings.Contains(got.body, "secret") {
			t.Errorf("%s: the answer tells: %s", code, got.body)
		}
		if retry := got.header.Get("Retry-After"); (retry != "") != (want == 503) {
			t.Errorf("%s: Retry-After %q", code, retry)
		}
		s.Close()
		if strings.Contains(log.String(), "secret") != (want >= 500) {
			t.Errorf("%s: log %q", code, log.String())
		}
	}
}

// TestHangingDatabaseIsUnavailable: if the database does not answer, the page fails as if the database could not be
// reached, with wait and without.
func TestHangingDatabaseIsUnavailable(t *testing.T) {
	hangs := stubSource{fetch: func(ctx context.Context, _ rowfeed.Request) (rowfeed.Page, error) {
		<-ctx.Done()
		return rowfeed.Page{}, ctx.Err()
	}}
	s := serve(t, feedhttp.NewHandler(stubCatalog{hangs}, &feedhttp.Config{PageTimeout: time.Millisecond}))
	for _, query := range []string{"", "?wait=1ms", "?consistent=true&wait=1ms"} {
		checkProblem(t, ask(t, s, "GET", "/_feeds/fetch/kv"+query),
			feedhttp.Problem{Type: "unavailable", Status: 503, Detail: "in time"})
	}
}

func TestUnknownErrorsAndPanicsAreHidden(t *testing.T) {
	for name, c := range map[string]struct {
		source stubSource
		want   feedhttp.Problem
	}{
		"foreign error": {failing(errors.New("secret")), feedhttp.Problem{Type: "failed", Status: 500}},
		"a limit of time": {failing(context.DeadlineExceeded),
			feedhttp.Problem{Type: "unavailable", Status: 503, Detail: "in time"}},
		"panic": {stubSource{}, feedhttp.Problem{Type: "failed", Status: 500, Detail: "log"}},
		"panic with value": {stubSource{fetch: func(context.Context, rowfeed.Request) (rowfeed.Page,
			error) {
			panic("secret")
		}}, feedhttp.Problem{Type: "failed", Status: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, feedhttp.NewHandler(stubCatalog{c.source}, nil))
			got := ask(t, s, "GET", "/_feeds/fetch/kv")
			checkProblem(t, got, c.want)
			if strings.Contains(got.body, "secret") {
				t.Error(got.body)
			}
		})
	}
}

func TestAbortedAndCancelledRequestsAreNoSuccess(t *testing.T) {
	abort := stubSource{fetch: func(context.Context, rowfeed.Request) (rowfeed.Page,
		error) {
		panic(http.ErrAbortHandler)
	}}
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("panic %v", v)
			}
		}()
		feedhttp.NewHandler(stubCatalog{abort}, nil).ServeHTTP(httptest.NewRecorder(),
			httptest.NewRequest("GET", "/_feeds/fetch/kv", nil))
	}()

	ctx, cancel := context.WithCancel(t.Context())
	gone := stubSource{fetch: func(context.Context, rowfeed.Request) (rowfeed.Page, error) {
		cancel()
		return rowfeed.Page{}, ctx.Err()
	}}
	w := httptest.NewRecorder()
	feedhttp.NewHandler(stubCatalog{gone}, nil).ServeHTTP(w,
		httptest.NewRequestWithContext(ctx, "GET", "/_feeds/fetch/kv", nil))
	// An empty 200 is never sent.
	checkProblem(t, answer{w.Code, w.Header(), w.Body.String()}, feedhttp.Problem{Type: "unavailable", Status: 503})
}
